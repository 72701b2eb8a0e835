/* yamldoc.c - YAML in, YAML out, for golden tables. */
#include "yamldoc.h"

#include "common/fsutil.h"
#include "common/yaml.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

cJSON *yamldoc_read(const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;

    if (fs_read(path, &text, err) < 0 || yaml_tree_parse(path, buf_str(&text), text.len, &a, &tree, err) < 0)
        return NULL;
    return yaml_json(tree);
}

cJSON *yamldoc_job(const char *path, struct err *err)
{
    cJSON *job = yamldoc_read(path, err);
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(job, "metadata");

    cJSON_AddStringToObject(meta, "namespace", "n");
    cJSON_AddStringToObject(meta, "uid", "u");
    cJSON_AddStringToObject(meta, "resourceVersion", "1");
    return job;
}

/* ---- out */

enum { WIDTH = 132 };

/* Words that a reader takes for something else than text. */
static bool is_word(const char *s)
{
    static const char *const WORDS[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (strcasecmp(s, WORDS[i]) == 0)
            return true;
    return false;
}

/* Some readers make a time of it. */
static bool is_date(const char *s)
{
    return strspn(s, "0123456789") == 4 && s[4] == '-';
}

/* Whether the text needs no quotes, wherever it stands. */
static bool is_plain(const char *s)
{
    static const char INSIDE[] = " _./:@%+=();'<>~-";
    size_t len = strlen(s);

    if (!len || is_word(s) || is_date(s) || strspn(s, "-+.0123456789eExo_") == len)
        return false;
    if (!isalnum((unsigned char)s[0]) && !strchr("_./(", s[0]) &&
        !(s[0] == '-' && (isalnum((unsigned char)s[1]) || s[1] == '-')))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr(INSIDE, s[i]))
            return false;
    return !strstr(s, ": ") && s[len - 1] != ':' && s[len - 1] != ' ';
}

/* Whether single quotes save escapes. */
static bool is_better_single(const char *s)
{
    for (size_t i = 0; s[i]; i++)
        if (s[i] < ' ' || s[i] > '~' || s[i] == '\'')
            return false;
    return strpbrk(s, "\"\\") != NULL;
}

static int write_text(const char *s, struct buf *out, struct err *err)
{
    if (is_plain(s))
        return buf_puts(out, s, err);
    if (is_better_single(s))
        return buf_printf(out, err, "'%s'", s);
    cleanup_json cJSON *text = cJSON_CreateString(s);
    return json_write(text, out, err);
}

static int write_flow(const cJSON *node, struct buf *out, struct err *err)
{
    bool list = cJSON_IsArray(node);
    const cJSON *m;

    if (cJSON_IsString(node))
        return write_text(node->valuestring, out, err);
    if (!list && !cJSON_IsObject(node))
        return json_write(node, out, err);
    if (buf_puts(out, list ? "[" : "{", err) < 0)
        return -1;
    cJSON_ArrayForEach(m, node)
    {
        if ((m != node->child && buf_puts(out, ", ", err) < 0) ||
            (!list && (write_text(m->string, out, err) < 0 || buf_puts(out, ": ", err) < 0)) ||
            write_flow(m, out, err) < 0)
            return -1;
    }
    return buf_puts(out, list ? "]" : "}", err);
}

/* Text that may stand as a block of its own lines. */
static bool is_lines(const char *s)
{
    size_t len = strlen(s);

    if (!strchr(s, '\n') || s[0] == ' ' || s[0] == '\n' || (len > 1 && s[len - 2] == '\n'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (s[i] != '\n' && (s[i] < ' ' || s[i] > '~'))
            return false;
    return true;
}

static bool is_leaf(const cJSON *node)
{
    return !node->child;
}

/* Several objects in a list have a line each, and several lines of text are a block. */
static bool needs_lines(const cJSON *node)
{
    bool list = cJSON_IsArray(node) && node->child && node->child->next;
    const cJSON *m;

    if (cJSON_IsString(node))
        return is_lines(node->valuestring);
    if (list && (cJSON_IsObject(node->child) || cJSON_IsObject(node->child->next)))
        return true;
    cJSON_ArrayForEach(m, node) if (needs_lines(m)) return true;
    return false;
}
static int write_lines(const char *s, int indent, struct buf *out, struct err *err)
{
    size_t len = strlen(s);

    if (buf_puts(out, s[len - 1] == '\n' ? " |\n" : " |-\n", err) < 0)
        return -1;
    for (size_t n; *s; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");
        if (buf_printf(out, err, "%*s%.*s\n", n ? indent : 0, "", (int)n, s) < 0)
            return -1;
    }
    return 0;
}

/* {a: 1, b: 2, over as many lines as it takes. */
static int write_wrapped(const cJSON *node, int column, int indent, struct buf *out, struct err *err)
{
    const cJSON *m;

    if (buf_puts(out, " {", err) < 0)
        return -1;
    column += 2;
    cJSON_ArrayForEach(m, node)
    {
        cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);
        if (write_text(m->string, &text, err) < 0 || buf_puts(&text, ": ", err) < 0 ||
            write_flow(m, &text, err) < 0 || buf_puts(&text, m->next ? "," : "}", err) < 0)
            return -1;
        if (m != node->child && column + 1 + (int)text.len > WIDTH) {
            if (buf_printf(out, err, "\n%*s", indent, "") < 0)
                return -1;
            column = indent;
        } else if (m != node->child) {
            if (buf_puts(out, " ", err) < 0)
                return -1;
            column++;
        }
        if (buf_puts(out, buf_str(&text), err) < 0)
            return -1;
        column += (int)text.len;
    }
    return buf_puts(out, "\n", err);
}

static bool holds_object(const cJSON *node)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, node) if (cJSON_IsObject(m) || holds_object(m)) return true;
    return false;
}

static int write_block(const cJSON *node, int indent, bool in_list, struct buf *out, struct err *err);

/* What stands behind a key or a dash that ends at `column`. */
static int write_value(const cJSON *node, int column, int indent, bool in_list, struct buf *out,
                       struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);
    bool lines = needs_lines(node);

    if (cJSON_IsString(node) && lines)
        return write_lines(node->valuestring, indent, out, err);
    if (write_flow(node, &text, err) < 0)
        return -1;
    if (is_leaf(node) || (!lines && column + 1 + (int)text.len <= WIDTH))
        return buf_printf(out, err, " %s\n", buf_str(&text));
    if (!lines && cJSON_IsObject(node) && !holds_object(node))
        return write_wrapped(node, column, indent, out, err);
    if (!in_list && buf_puts(out, "\n", err) < 0)
        return -1;
    return write_block(node, in_list || cJSON_IsObject(node) ? indent : indent - 2, in_list, out, err);
}

/* `in_list`: a dash was written in front of it. */
static int write_block(const cJSON *node, int indent, bool in_list, struct buf *out, struct err *err)
{
    const bool list = cJSON_IsArray(node);
    const cJSON *m;

    cJSON_ArrayForEach(m, node)
    {
        cleanup_buf struct buf key = BUF_INIT(YAML_TREE_BYTES_MAX);
        int pad = in_list && m == node->child ? 1 : indent;
        if (!list && write_text(m->string, &key, err) < 0)
            return -1;
        if (buf_printf(out, err, "%*s%s%s", pad, "", buf_str(&key), list ? "-" : ":") < 0 ||
            write_value(m, indent + (int)key.len + 1, indent + 2, list, out, err) < 0)
            return -1;
    }
    return 0;
}

int yamldoc_write(const cJSON *node, struct buf *out, struct err *err)
{
    return write_block(node, 0, false, out, err);
}

/* An action with one member, such as a status, is not put into braces. */
int yamldoc_write_list(const char *key, const cJSON *list, struct buf *out, struct err *err)
{
    const cJSON *item;

    if (buf_printf(out, err, "%s:%s\n", key, list->child ? "" : " []") < 0)
        return -1;
    cJSON_ArrayForEach(item, list)
    {
        bool single = item->child && !item->child->next;
        if (buf_puts(out, "-", err) < 0 ||
            (single ? write_block(item, 2, true, out, err) : write_value(item, 1, 2, true, out, err)) < 0)
            return -1;
    }
    return 0;
}

void yamldoc_merge(cJSON *to, const cJSON *patch)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, patch)
    {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(to, m->string);
        if (cJSON_IsObject(old) && cJSON_IsObject(m)) {
            yamldoc_merge(old, m);
            continue;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(to, m->string);
        if (!cJSON_IsNull(m))
            cJSON_AddItemToObject(to, m->string, cJSON_Duplicate(m, true));
    }
}

static int spoil_below(cJSON *root, cJSON *node, void (*show)(void *ctx, const cJSON *spoiled), void *ctx)
{
    static const char *const JUNK[] = {"null",  "true", "-1",  "1e300", "0.5", "\"\"",
                                       "\"x\"", "[]",   "[1]", "[[]]",  "{}",  "{\"a\":[{}]}"};
    struct err err;
    int count = 0;

    for (cJSON *child = node->child; child; child = child->next) {
        for (size_t i = 0; i < ARRAY_LEN(JUNK); i++) {
            cJSON saved = *child;
            cleanup_json cJSON *junk = json_parse(JUNK[i], strlen(JUNK[i]), &err);
            child->type = junk->type;
            child->child = junk->child;
            child->valuestring = junk->valuestring;
            child->valuedouble = junk->valuedouble;
            child->valueint = junk->valueint;
            cleanup_json cJSON *copy = cJSON_Duplicate(root, true);
            *child = saved;
            show(ctx, copy);
            count++;
        }
        count += spoil_below(root, child, show, ctx);
    }
    return count;
}

int yamldoc_spoil(cJSON *root, void (*show)(void *ctx, const cJSON *spoiled), void *ctx)
{
    return spoil_below(root, root, show, ctx);
}
