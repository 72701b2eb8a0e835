/* yaml_write.c - write a JSON tree as YAML over libyaml's emitter. */
#include "common/yaml_write.h"

#include "common/json.h"
#include "common/text.h"

#include <string.h>
#include <strings.h>
#include <yaml.h>

struct writer {
    yaml_emitter_t emitter;
    struct buf *out;
    struct err *err;
};

static int on_bytes(void *ctx, unsigned char *bytes, size_t len)
{
    struct writer *w = ctx;

    return buf_append(w->out, bytes, len, NULL) == 0;
}

/* libyaml frees the event, also on failure. */
static int emit(struct writer *w, yaml_event_t *event)
{
    if (yaml_emitter_emit(&w->emitter, event))
        return 0;
    if (buf_check(w->out, w->err) < 0)
        return -1;
    return err_set(w->err, ERR_INVALID, "cannot be written as YAML: %s",
                   w->emitter.problem ? w->emitter.problem : "no memory");
}

/* Words that some readers parse as null, a boolean, a number or a merge key. */
static bool is_word(const char *s)
{
    static const char *const WORDS[] = {"null", "true", "false", "yes",   "no",    "on",   "off",
                                        "y",    "n",    ".inf",  "-.inf", "+.inf", ".nan", NULL};

    for (int i = 0; WORDS[i]; i++)
        if (strcasecmp(s, WORDS[i]) == 0)
            return true;
    return strcmp(s, "~") == 0 || strcmp(s, "<<") == 0 || strcmp(s, "=") == 0;
}

/* Numbers in all bases, times of day in base 60, dates; not 2Gi or 100m. */
static bool is_like_number(const char *s)
{
    return strchr("0123456789+-.", s[0]) && strpbrk(s, "0123456789") &&
           s[strspn(s, "0123456789abcdefABCDEF+-._:xXoOtTzZ \t")] == '\0';
}

/* Readers turn these into line feeds in a literal block: carriage return, NEL, and Unicode's separators. */
static bool has_odd_breaks(const char *s)
{
    return strchr(s, '\r') || strstr(s, "\xc2\x85") || strstr(s, "\xe2\x80\xa8") || strstr(s, "\xe2\x80\xa9");
}

/* The style to request; libyaml uses a stricter one if the text needs it. */
static yaml_scalar_style_t style_of(const char *s)
{
    if (has_odd_breaks(s))
        return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    if (strchr(s, '\n'))
        return YAML_LITERAL_SCALAR_STYLE;
    return !s[0] || is_word(s) || is_like_number(s) ? YAML_SINGLE_QUOTED_SCALAR_STYLE
                                                    : YAML_PLAIN_SCALAR_STYLE;
}

static int put_scalar(struct writer *w, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    yaml_char_t *value = (yaml_char_t *)(uintptr_t)text; /* copied */

    if (!yaml_scalar_event_initialize(&event, NULL, NULL, value, (int)strlen(text), 1, 1, style))
        return err_set(w->err, ERR_INVALID, "cannot be written as YAML: \"%.40s\" is not UTF-8", text);
    return emit(w, &event);
}

static int put_text(struct writer *w, const char *text)
{
    return put_scalar(w, text, style_of(text));
}

/* In YAML 1.1 1e3 is text. All readers accept 1.0e+3. */
static int put_number(struct writer *w, const cJSON *node)
{
    cleanup_buf struct buf json = BUF_INIT(1024);
    cleanup_buf struct buf yaml = BUF_INIT(1024);

    if (json_write(node, &json, w->err) < 0)
        return -1;
    const char *s = buf_str(&json);
    const char *e = strchr(s, 'e');
    if (!e)
        return put_scalar(w, s, YAML_PLAIN_SCALAR_STYLE);
    const bool point = memchr(s, '.', (size_t)(e - s)) != NULL;
    if (buf_printf(&yaml, w->err, "%.*s%s%s", (int)(e - s), s, point ? "" : ".0", e) < 0)
        return -1;
    return put_scalar(w, buf_str(&yaml), YAML_PLAIN_SCALAR_STYLE);
}

static int put_node(struct writer *w, const cJSON *node, int depth);

static int put_children(struct writer *w, const cJSON *node, int depth)
{
    const bool object = cJSON_IsObject(node);
    yaml_event_t event;
    const cJSON *child;

    if (object)
        yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE);
    else
        yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_SEQUENCE_STYLE);
    if (emit(w, &event) < 0)
        return -1;
    cJSON_ArrayForEach(child, node)
    {
        if ((object && put_text(w, child->string) < 0) || put_node(w, child, depth + 1) < 0)
            return -1;
    }
    if (object)
        yaml_mapping_end_event_initialize(&event);
    else
        yaml_sequence_end_event_initialize(&event);
    return emit(w, &event);
}

static int put_node(struct writer *w, const cJSON *node, int depth)
{
    if (depth > YAML_WRITE_DEPTH_MAX)
        return err_set(w->err, ERR_INVALID, "cannot be written as YAML: nested over %d levels",
                       YAML_WRITE_DEPTH_MAX);
    if (cJSON_IsString(node))
        return put_text(w, node->valuestring);
    if (cJSON_IsNumber(node))
        return put_number(w, node);
    if (cJSON_IsBool(node))
        return put_scalar(w, cJSON_IsTrue(node) ? "true" : "false", YAML_PLAIN_SCALAR_STYLE);
    if (cJSON_IsObject(node) || cJSON_IsArray(node))
        return put_children(w, node, depth);
    return put_scalar(w, "null", YAML_PLAIN_SCALAR_STYLE);
}

static int put_document(struct writer *w, const cJSON *node)
{
    yaml_event_t event;

    yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    if (emit(w, &event) < 0)
        return -1;
    yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1);
    if (emit(w, &event) < 0 || put_node(w, node, 1) < 0)
        return -1;
    yaml_document_end_event_initialize(&event, 1);
    if (emit(w, &event) < 0)
        return -1;
    yaml_stream_end_event_initialize(&event);
    return emit(w, &event);
}

static int write_in(const cJSON *node, bool unicode, struct buf *out, struct err *err)
{
    struct writer w = {.out = out, .err = err};

    if (!yaml_emitter_initialize(&w.emitter))
        return err_memory(err, "no memory to write YAML");
    yaml_emitter_set_output(&w.emitter, on_bytes, &w);
    yaml_emitter_set_unicode(&w.emitter, unicode);
    yaml_emitter_set_width(&w.emitter, -1);
    int failed = put_document(&w, node);
    yaml_emitter_delete(&w.emitter);
    return failed;
}

/* Whether text written by libyaml has a hidden character. */
static bool has_hidden(const char *s)
{
    uint32_t c = 0;

    while (*s && !text_is_hidden(c))
        s += text_character(s, 4, &c);
    return text_is_hidden(c);
}

int yaml_write(const cJSON *node, struct buf *out, struct err *err)
{
    const size_t before = out->len;

    if (write_in(node, true, out, err) < 0)
        return -1;
    if (!has_hidden(buf_str(out) + before))
        return 0;
    out->len = before;
    return write_in(node, false, out, err);
}
