/* sentences.c - a sentence from its key and arguments, and back. */
#include "sentences.h"

#include "yamldoc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int sentences_read(const char *path, struct sentences *ret, struct err *err)
{
    cleanup_json cJSON *doc = yamldoc_read(path, err);
    const cJSON *item;

    if (!doc)
        return -1;
    *ret = (struct sentences){0};
    ret->items = arena_array(&ret->arena, (size_t)cJSON_GetArraySize(doc), struct sentence);
    cJSON_ArrayForEach(item, doc)
    {
        struct sentence *s = &ret->items[ret->n++];
        s->key = arena_strdup(&ret->arena, item->string);
        s->text = arena_strdup(&ret->arena, cJSON_IsString(item) ? item->valuestring : "");
    }
    return 0;
}

void sentences_free(struct sentences *s)
{
    arena_release(&s->arena);
    *s = (struct sentences){0};
}

static struct sentence *find(const struct sentences *s, const cJSON *key)
{
    for (int i = 0; cJSON_IsString(key) && i < s->n; i++)
        if (strcmp(s->items[i].key, key->valuestring) == 0)
            return &s->items[i];
    return NULL;
}

/* ---- from the node to the text */

static const char *number_text(const cJSON *node, struct arena *a)
{
    return arena_printf(a, "%.0f", node->valuedouble);
}

const char *sentences_text(const struct sentences *s, const cJSON *node, struct arena *a, struct err *err)
{
    const char *out = "";

    if (cJSON_IsString(node))
        return node->valuestring;
    if (cJSON_IsNumber(node))
        return number_text(node, a);
    const struct sentence *entry = cJSON_IsArray(node) ? find(s, node->child) : NULL;
    if (!entry) {
        (void)err_set(err, ERR_INVALID, "no sentence %s is in the table", node ? json_print(node, a) : "");
        return NULL;
    }
    const cJSON *arg = node->child->next;
    for (const char *t = entry->text; *t;) {
        size_t len = strcspn(t, "{");
        out = arena_printf(a, "%s%.*s", out, (int)len, t);
        t += len;
        if (!*t)
            break;
        const char *text = arg ? sentences_text(s, arg, a, err) : NULL;
        if (!text)
            return arg ? NULL : (err_set(err, ERR_INVALID, "%s: too few arguments", entry->key), NULL);
        out = arena_printf(a, "%s%s", out, text);
        arg = arg->next;
        t += strcspn(t, "}") + 1;
    }
    return arg ? (err_set(err, ERR_INVALID, "%s: too many arguments", entry->key), NULL) : out;
}

/* ---- from the text to the node */

static bool is_number(const char *text, size_t len)
{
    size_t i = text[0] == '-';

    if (len == i || len > 15 || (text[i] == '0' && len > i + 1))
        return false;
    for (; i < len; i++)
        if (!isdigit((unsigned char)text[i]))
            return false;
    return true;
}

static bool is_camel(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]))
            return false;
    return isupper((unsigned char)text[0]);
}

/* Whether these bytes may stand for the placeholder, whose braces are at [t, end]. */
static bool fits(const char *t, const char *end, const char *text, size_t len)
{
    if (end[-1] == '#')
        return is_number(text, len);
    if (end[-1] == '.')
        return true;
    if (isupper((unsigned char)t[1]))
        return is_camel(text, len);
    return !memchr(text, ' ', len);
}

/* Whether the text is the template's; then *args are the texts of its placeholders. The shortest ones are taken. */
static bool match(const char *t, const char *text, cJSON *args)
{
    while (*t && *t != '{')
        if (*t++ != *text++)
            return false;
    if (!*t)
        return !*text;
    const char *end = strchr(t, '}');
    size_t all = strlen(text);
    for (size_t len = end[1] ? 1 : all; len > 0 && len <= all; len++) {
        if (!fits(t, end, text, len))
            continue;
        char *part = strndup(text, len);
        cJSON *arg = end[-1] == '#' ? cJSON_CreateNumber(strtod(part, NULL)) : cJSON_CreateString(part);
        free(part);
        cJSON_AddItemToArray(args, arg);
        if (match(end + 1, text + len, args))
            return true;
        cJSON_DeleteItemFromArray(args, cJSON_GetArraySize(args) - 1);
    }
    return false;
}

/* The arguments that may be sentences, as such. */
static void resolve(const struct sentences *s, const char *t, cJSON *node)
{
    cJSON *arg = node->child->next;

    for (t = strchr(t, '{'); t; t = strchr(t, '{')) {
        const char *end = strchr(t, '}');
        cJSON *next = arg->next;
        if (end[-1] == '.')
            cJSON_ReplaceItemViaPointer(node, arg, sentences_node(s, arg->valuestring));
        arg = next;
        t = end;
    }
}

cJSON *sentences_node(const struct sentences *s, const char *text)
{
    for (int i = 0; i < s->n; i++) {
        cJSON *node = cJSON_CreateArray();
        cJSON_AddItemToArray(node, cJSON_CreateString(s->items[i].key));
        if (match(s->items[i].text, text, node)) {
            resolve(s, s->items[i].text, node);
            return node;
        }
        cJSON_Delete(node);
    }
    return cJSON_CreateString(text);
}

/* ---- what is used, and what is missing */

void sentences_note(struct sentences *s, const cJSON *node)
{
    struct sentence *entry = cJSON_IsArray(node) ? find(s, node->child) : NULL;
    const cJSON *arg;

    if (!entry)
        return;
    entry->produced = true;
    cJSON_ArrayForEach(arg, node) sentences_note(s, arg);
}

/* Every run of letters and digits is in `known`. */
static bool made_of(const char *text, const char *known)
{
    size_t known_len = strlen(known);

    for (const char *p = text; *p;) {
        size_t len = 0;
        while (isalnum((unsigned char)p[len]))
            len++;
        if (len > 1 && !memmem(known, known_len, p, len))
            return false;
        p += len ? len : 1;
    }
    return true;
}

const char *sentences_unknown(const cJSON *node, const char *known)
{
    const cJSON *arg;

    if (cJSON_IsString(node))
        return strchr(node->valuestring, ' ') && !made_of(node->valuestring, known) ? node->valuestring
                                                                                    : NULL;
    for (arg = cJSON_IsArray(node) && node->child ? node->child->next : NULL; arg; arg = arg->next) {
        const char *text = sentences_unknown(arg, known);
        if (text)
            return text;
    }
    return NULL;
}
