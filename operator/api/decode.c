/* decode.c - decode JSON objects strictly: closed sets of members and of words, errors with paths. */
#include "operator/api/decode.h"
#include "common/clock.h"
#include "common/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int decode_index(const char *const *words, const char *s)
{
    for (int i = 0; words && s && words[i]; i++)
        if (strcmp(words[i], s) == 0)
            return i;
    return -1;
}

int decode_names(const cJSON *metadata, const char *kind, struct object_names *ret, struct err *err)
{
    static const struct {
        const char *key;
        size_t max;
    } ROWS[] = {{"namespace", DECODE_LABEL_BYTES},
                {"name", DECODE_NAME_BYTES},
                {"uid", DECODE_UID_BYTES},
                {"resourceVersion", DECODE_VERSION_BYTES}};
    const char *texts[ARRAY_LEN(ROWS)];

    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        texts[i] = json_str(metadata, ROWS[i].key);
        texts[i] = texts[i] ? texts[i] : "";
        if (!texts[i][0] && i + 1 < ARRAY_LEN(ROWS)) /* the version does not identify the object */
            return err_set(err, ERR_INVALID, "%s: metadata without %s", kind, ROWS[i].key);
        if (strlen(texts[i]) > ROWS[i].max)
            return err_set(err, ERR_INVALID, "%s: metadata.%s: expected at most %zu characters, got %zu",
                           kind, ROWS[i].key, ROWS[i].max, strlen(texts[i]));
    }
    *ret = (struct object_names){texts[0], texts[1], texts[2], texts[3]};
    return 0;
}

int decode_members(const struct json_at *at, const char *const *known, const char *const *refused,
                   struct err *err)
{
    const cJSON *child;

    if (json_expect_object(at, err) < 0)
        return -1;
    cJSON_ArrayForEach(child, at->node)
    {
        if (decode_index(known, child->string) >= 0 || cJSON_IsNull(child))
            continue;
        if (decode_index(refused, child->string) >= 0)
            return json_err(DECODE_AT(at, child->string), err, "not supported by this version");
        return json_err(DECODE_AT(at, child->string), err, "unknown field");
    }
    return 0;
}

int decode_numbers(const struct json_at *at, struct err *err)
{
    const cJSON *child;
    int i = 0;

    if (cJSON_IsNumber(at->node) && !json_is_exact(at->node))
        return json_err(at, err,
                        "expected a number below 2^53, got about %.17g: write a smaller number, or a string",
                        at->node->valuedouble);
    cJSON_ArrayForEach(child, at->node)
    {
        struct json_at next = {child, at, child->string, i++};
        if (decode_numbers(&next, err) < 0)
            return -1;
    }
    return 0;
}

int decode_word(const struct json_at *at, const char *key, const char *const *words, int *ret,
                struct err *err)
{
    const char *s = NULL;
    char list[160] = "";

    if (json_get_str(at, key, &s, err) < 0)
        return -1;
    int i = decode_index(words, s);
    if (i >= 0)
        *ret = i;
    if (i >= 0 || !s)
        return 0;
    for (size_t len = 0, n = 0; words[n] && len < sizeof(list); n++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", n ? ", " : "", words[n]);
    return json_err(DECODE_AT(at, key), err, "expected one of %s, got \"%.40s\"", list, s);
}

int decode_opt_i64(const struct json_at *at, const char *key, int64_t min, int64_t max, struct opt_i64 *ret,
                   struct err *err)
{
    if (json_get_i64(at, key, min, max, &ret->v, err) < 0)
        return -1;
    ret->set = json_has(at, key);
    return 0;
}

static int check_length(const struct json_at *at, const char *s, size_t max_bytes, struct err *err)
{
    size_t len = strlen(s);

    if (len > max_bytes)
        return json_err(at, err, "expected at most %zu characters, got %zu", max_bytes, len);
    return 0;
}

int decode_text(const struct json_at *at, const char *key, size_t max_bytes, const char **ret,
                struct err *err)
{
    struct json_at m = json_member(at, key);
    const char *s = *ret;

    if (json_get_str(at, key, &s, err) < 0 || (m.node && check_length(&m, s, max_bytes, err) < 0))
        return -1;
    *ret = s;
    return 0;
}

bool decode_next(const struct json_at *list, struct json_at *item)
{
    *item = item->parent ? json_item(list, item->node->next, item->index + 1)
                         : json_item(list, list->node ? list->node->child : NULL, 0);
    return item->node;
}

int decode_strings(const struct json_at *at, const char *key, int max_items, size_t max_bytes,
                   struct arena *a, const char *const **ret, int *ret_n, struct err *err)
{
    struct json_at list = json_member(at, key);
    int n = 0;

    if (json_expect_array(&list, max_items, err) < 0)
        return -1;
    if (!list.node)
        return 0;
    const char **out = arena_array(a, (size_t)cJSON_GetArraySize(list.node) + 1, const char *);
    for (struct json_at item = {0}; decode_next(&list, &item);) {
        if (!cJSON_IsString(item.node))
            return json_err(&item, err, "expected a string");
        if (check_length(&item, item.node->valuestring, max_bytes, err) < 0)
            return -1;
        out[n++] = item.node->valuestring;
    }
    *ret = out;
    *ret_n = n;
    return 0;
}

void *decode_pack(const void *from, size_t size, const char **const *fields, size_t n)
{
    size_t bytes = size;

    for (size_t i = 0; i < n; i++)
        bytes += *fields[i][0] ? strlen(*fields[i]) + 1 : 0;
    char *block = memory_must(malloc(bytes));
    char *to = block + size;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(*fields[i]) + 1;
        *fields[i] = len > 1 ? memcpy(to, *fields[i], len) : "";
        to += len > 1 ? len : 0;
    }
    return memcpy(block, from, size);
}

int64_t decode_instant(const cJSON *node, const char *key)
{
    const char *s = json_str(node, key);
    int64_t ms = 0;

    return s && clock_parse_rfc3339(s, &ms) && ms > 0 ? ms : 0;
}

bool decode_is_dns_label(const char *s, size_t max, bool letter_first)
{
    size_t len = strlen(s);

    if (len < 1 || len > max || s[0] == '-' || s[len - 1] == '-' ||
        (letter_first && !islower((unsigned char)s[0])))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-')
            return false;
    return true;
}
