/* json.c - parse JSON into cJSON trees within bounds, read them with paths in errors, print them exactly. */
#include "common/json.h"

#include "common/clock.h"
#include "common/hash.h"
#include "common/jsontok.h"
#include "common/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_MAX_BYTES = 63, /* cJSON cuts longer ones */
    NUMBER_PRINT_BYTES = 32,
};

static void *malloc_must(size_t size)
{
    return memory_must(malloc(size));
}

void json_memory_must(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = malloc_must, .free_fn = free});
}

static int unreadable(struct err *err)
{
    err->code = JSON_UNREADABLE;
    return -1;
}

/* Check a word that begins as a number. cJSON also accepts 01 and 1.; it refuses all other malformed numbers. */
static int check_number(struct sv word, size_t at, struct err *err)
{
    const size_t sign = word.p[0] == '-';
    bool bad = word.len > sign + 1 && word.p[sign] == '0' && sv_is_digit(word.p[sign + 1]);

    for (size_t i = 0; i < word.len; i++)
        bad |= !memchr("0123456789+-.eE", word.p[i], 15) ||
               (word.p[i] == '.' &&
                (i == 0 || !sv_is_digit(word.p[i - 1]) || i + 1 == word.len || !sv_is_digit(word.p[i + 1])));
    if (bad)
        return err_set(err, ERR_INVALID, "not JSON at byte %zu", at);
    if (word.len <= NUMBER_MAX_BYTES)
        return 0;
    err_set(err, ERR_INVALID, "a number of over %d characters at byte %zu", NUMBER_MAX_BYTES, at);
    return unreadable(err);
}

/* Check what cJSON does not: the size of the tree, strings that it would cut, numbers that it would change. */
static int check(struct sv text, int depth_max, struct err *err)
{
    struct jsontok t = {0};
    struct sv rest = text;
    size_t values = 1; /* an upper bound */
    char c;

    do {
        c = jsontok_next(&t, &rest);
        values += c == '{' || c == '[' || c == ',';
        if ((c == '-' || sv_is_digit(c)) && check_number((struct sv){t.begin, (size_t)(rest.p - t.begin)},
                                                         (size_t)(t.begin - text.p), err) < 0)
            return -1;
        if (t.nul)
            err_set(err, ERR_INVALID, "a NUL character in a string at byte %zu", (size_t)(t.nul - text.p));
        else if (t.depth > (size_t)depth_max)
            err_set(err, ERR_INVALID, "JSON nests deeper than %d levels", JSON_DEPTH_MAX);
        else if (values > JSON_VALUES_MAX)
            err_set(err, ERR_INVALID, "JSON of more than %d values", JSON_VALUES_MAX);
        else
            continue;
        return unreadable(err);
    } while (c);
    return 0;
}

cJSON *json_parse_within(const char *text, size_t len, int depth_max, struct err *err)
{
    const char *end = NULL;

    if (check((struct sv){text, len}, depth_max, err) < 0)
        return NULL;
    cleanup_json cJSON *tree = cJSON_ParseWithLengthOpts(text, len, &end, false);
    if (!tree) {
        err_set(err, ERR_INVALID, "not JSON at byte %zu of %zu", end ? (size_t)(end - text) : 0, len);
        return NULL;
    }
    for (; end < text + len; end++) {
        if (!memchr(" \t\r\n", *end, 4)) {
            err_set(err, ERR_INVALID, "text after the JSON at byte %zu of %zu", (size_t)(end - text), len);
            return NULL;
        }
    }
    return TAKE(tree);
}

cJSON *json_parse(const char *text, size_t len, struct err *err)
{
    return json_parse_within(text, len, JSON_DEPTH_MAX, err);
}

struct json_at json_root(const cJSON *node, const char *name)
{
    return (struct json_at){node, NULL, name, 0};
}

struct json_at json_member(const struct json_at *at, const char *key)
{
    return (struct json_at){json_child(at->node, key), at, key, 0};
}

struct json_at json_item(const struct json_at *at, const cJSON *item, int index)
{
    return (struct json_at){item, at, NULL, index};
}

bool json_has(const struct json_at *at, const char *key)
{
    return json_member(at, key).node != NULL;
}

void json_path(const struct json_at *at, char *out, size_t size)
{
    const struct json_at *chain[JSON_DEPTH_MAX];
    int n = 0;
    size_t len = 0;

    out[0] = '\0';
    for (; at && n < JSON_DEPTH_MAX; at = at->parent)
        chain[n++] = at;
    while (n-- > 0 && len < size) {
        int add = chain[n]->key ? snprintf(out + len, size - len, "%s%s", len ? "." : "", chain[n]->key)
                                : snprintf(out + len, size - len, "[%d]", chain[n]->index);
        len += add > 0 ? (size_t)add : 0;
    }
}

int json_err(const struct json_at *at, struct err *err, const char *fmt, ...)
{
    char path[ERR_MSG_BYTES / 2];
    char what[ERR_MSG_BYTES];
    va_list ap;

    json_path(at, path, sizeof(path));
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(err, ERR_INVALID, "%s: %s", path, what);
}

/* Text that reads back as the same double: a 64-bit integer without an exponent, other numbers as short as
 * possible, since 0.1 must not become 0.10000000000000001, a larger quantity. */
static void print_number(double v, char out[NUMBER_PRINT_BYTES])
{
    if (isinf(v))
        snprintf(out, NUMBER_PRINT_BYTES, "%s", v < 0 ? "-1e+999" : "1e+999");
    else if (v == trunc(v) && fabs(v) < 0x1p63)
        snprintf(out, NUMBER_PRINT_BYTES, "%lld", (long long)v);
    else
        for (int n = 15; n <= 17; n++) {
            snprintf(out, NUMBER_PRINT_BYTES, "%.*g", n, v);
            if (strtod(out, NULL) == v)
                break;
        }
}

/* The actual value, shortened for a message. */
static void describe(const cJSON *node, char out[static 64], size_t size)
{
    if (cJSON_IsString(node))
        snprintf(out, size, "\"%.40s\"", node->valuestring);
    else if (cJSON_IsNumber(node))
        print_number(node->valuedouble, out);
    else if (cJSON_IsBool(node))
        snprintf(out, size, "%s", cJSON_IsTrue(node) ? "true" : "false");
    else
        snprintf(out, size, "%s",
                 cJSON_IsArray(node)    ? "a list"
                 : cJSON_IsObject(node) ? "an object"
                                        : "null");
}

static int expected(const struct json_at *at, const char *what, struct err *err)
{
    char got[64];

    describe(at->node, got, sizeof(got));
    return json_err(at, err, "expected %s, got %s", what, got);
}

int json_expect_object(const struct json_at *at, struct err *err)
{
    return !at->node || cJSON_IsObject(at->node) ? 0 : expected(at, "an object", err);
}

int json_expect_array(const struct json_at *at, int max_items, struct err *err)
{
    if (!at->node)
        return 0;
    if (!cJSON_IsArray(at->node))
        return expected(at, "a list", err);
    int n = cJSON_GetArraySize(at->node);
    return n <= max_items ? 0 : json_err(at, err, "expected at most %d items, got %d", max_items, n);
}

int json_get_str(const struct json_at *at, const char *key, const char **ret, struct err *err)
{
    struct json_at m = json_member(at, key);

    if (!m.node)
        return 0;
    if (!cJSON_IsString(m.node))
        return expected(&m, "a string", err);
    *ret = m.node->valuestring;
    return 0;
}

int json_get_bool(const struct json_at *at, const char *key, bool *ret, struct err *err)
{
    struct json_at m = json_member(at, key);

    if (!m.node)
        return 0;
    if (!cJSON_IsBool(m.node))
        return expected(&m, "true or false", err);
    *ret = cJSON_IsTrue(m.node);
    return 0;
}

static bool is_integer(const cJSON *node)
{
    return json_is_exact(node) && node->valuedouble == trunc(node->valuedouble);
}

int json_get_i64(const struct json_at *at, const char *key, int64_t min, int64_t max, int64_t *ret,
                 struct err *err)
{
    struct json_at m = json_member(at, key);
    char want[64];

    if (!m.node)
        return 0;
    int64_t v = is_integer(m.node) ? (int64_t)m.node->valuedouble : 0;
    if (!is_integer(m.node) || v < min || v > max) {
        snprintf(want, sizeof(want), "an integer %lld..%lld", (long long)min, (long long)max);
        return expected(&m, want, err);
    }
    *ret = v;
    return 0;
}

int json_get_i32(const struct json_at *at, const char *key, int32_t min, int32_t max, int32_t *ret,
                 struct err *err)
{
    int64_t v = *ret;

    if (json_get_i64(at, key, min, max, &v, err) < 0)
        return -1;
    *ret = (int32_t)v;
    return 0;
}

cJSON *json_child(const cJSON *node, const char *key)
{
    cJSON *m = cJSON_IsObject(node) ? cJSON_GetObjectItemCaseSensitive(node, key) : NULL;

    return cJSON_IsNull(m) ? NULL : m;
}

const cJSON *json_find(const cJSON *node, const char *const *keys)
{
    for (; node && *keys; keys++)
        node = json_child(node, *keys);
    return node;
}

void json_set(cJSON *object, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (value)
        cJSON_AddItemToObject(object, key, value);
}

void json_add_time(cJSON *object, const char *key, int64_t wall_ms)
{
    char time[CLOCK_RFC3339_BYTES];

    if (wall_ms <= 0)
        return;
    clock_rfc3339(wall_ms, false, time);
    cJSON_AddStringToObject(object, key, time);
}

const char *json_str(const cJSON *node, const char *key)
{
    const cJSON *m = json_child(node, key);

    return cJSON_IsString(m) ? m->valuestring : NULL;
}

const char *json_meta(const cJSON *object, const char *key)
{
    return json_str(json_child(object, "metadata"), key);
}

cJSON *json_item_with(const cJSON *list, const char *key, const char *value)
{
    cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        const char *own = json_str(item, key);
        if (own && value && strcmp(own, value) == 0)
            return item;
    }
    return NULL;
}

bool json_is_exact(const cJSON *node)
{
    return cJSON_IsNumber(node) && fabs(node->valuedouble) < 0x1p53;
}

int64_t json_exact_i64(const cJSON *node, int64_t fallback)
{
    return is_integer(node) ? (int64_t)node->valuedouble : fallback;
}

int64_t json_i64(const cJSON *node, const char *key, int64_t fallback)
{
    return json_exact_i64(json_child(node, key), fallback);
}

int json_write_string(const char *s, struct buf *out, struct err *err)
{
    if (buf_append(out, "\"", 1, err) < 0)
        return -1;
    while (*s) {
        size_t plain = 0;
        while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
            plain++;
        if (buf_append(out, s, plain, err) < 0)
            return -1;
        s += plain;
        if (!*s)
            break;
        int failed = *s == '"' || *s == '\\' ? buf_append(out, (char[]){'\\', *s}, 2, err)
                                             : buf_printf(out, err, "\\u%04x", (unsigned char)*s);
        if (failed)
            return -1;
        s++;
    }
    return buf_append(out, "\"", 1, err);
}

static int write_number(const cJSON *node, struct buf *out, struct err *err)
{
    char text[NUMBER_PRINT_BYTES];

    if (isnan(node->valuedouble))
        return err_set(err, ERR_INVALID, "a number that JSON cannot hold");
    print_number(node->valuedouble, text);
    return buf_puts(out, text, err);
}

static int write_children(const cJSON *node, bool names, struct buf *out, struct err *err)
{
    const cJSON *child;

    if (buf_puts(out, names ? "{" : "[", err) < 0)
        return -1;
    cJSON_ArrayForEach(child, node)
    {
        if (child != node->child && buf_append(out, ",", 1, err) < 0)
            return -1;
        if (names && (json_write_string(child->string, out, err) < 0 || buf_append(out, ":", 1, err) < 0))
            return -1;
        if (json_write(child, out, err) < 0)
            return -1;
    }
    return buf_puts(out, names ? "}" : "]", err);
}

int json_write(const cJSON *node, struct buf *out, struct err *err)
{
    if (cJSON_IsObject(node) || cJSON_IsArray(node))
        return write_children(node, cJSON_IsObject(node), out, err);
    if (cJSON_IsString(node))
        return json_write_string(node->valuestring, out, err);
    if (cJSON_IsNumber(node))
        return write_number(node, out, err);
    if (cJSON_IsRaw(node))
        return buf_puts(out, node->valuestring, err);
    if (cJSON_IsBool(node))
        return buf_puts(out, cJSON_IsTrue(node) ? "true" : "false", err);
    return buf_puts(out, "null", err);
}

char *json_print(const cJSON *node, struct arena *a)
{
    cleanup_buf struct buf b = BUF_INIT(SIZE_MAX / 4);
    struct err err;

    if (json_write(node, &b, &err) < 0)
        return arena_strdup(a, "null");
    return arena_strndup(a, buf_str(&b), b.len);
}

uint64_t json_hash(const cJSON *node)
{
    uint64_t h = HASH_FNV1A;
    uint64_t members = 0;
    const cJSON *child;
    int type = node ? node->type & 0xff : 0;

    h = hash_fnv1a(h, &type, sizeof(type));
    if (cJSON_IsString(node)) /* including the NUL, since a member's name is hashed after it */
        return hash_fnv1a(h, node->valuestring, strlen(node->valuestring) + 1);
    if (cJSON_IsNumber(node)) {
        double value = node->valuedouble + 0.0; /* -0 becomes 0 */
        return hash_fnv1a(h, &value, sizeof(value));
    }
    cJSON_ArrayForEach(child, node)
    {
        uint64_t value = json_hash(child);
        if (cJSON_IsObject(node)) /* a sum does not depend on the order */
            members += hash_fnv1a(value, child->string, strlen(child->string));
        else
            h = hash_fnv1a(h, &value, sizeof(value));
    }
    return hash_fnv1a(h, &members, sizeof(members));
}
