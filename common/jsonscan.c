/* jsonscan.c - check a JSON text's nesting and number of values before cJSON builds a tree of it. */
#include "common/jsonscan.h"

#include "common/json.h"
#include "common/jsonnum.h"
#include "common/memory.h"

#include <string.h>

struct look {
    struct sv text;
    size_t at;
    int depth;
    size_t values; /* an upper bound of the number of values */
};

static int unreadable(struct err *err)
{
    err->code = JSON_UNREADABLE;
    return -1;
}

/* From the opening quote to behind the closing one, or to the end. */
static int string(struct look *l, struct err *err)
{
    const char *p = l->text.p;
    size_t len = l->text.len;

    for (l->at++; l->at < len && p[l->at] != '"'; l->at++) {
        size_t begin = l->at;
        bool escaped = p[begin] == '\\';
        l->at += escaped;
        if (p[begin] == '\0' || (escaped && len - begin >= 6 && memcmp(p + begin + 1, "u0000", 5) == 0)) {
            err_set(err, ERR_INVALID, "a NUL character in a string at byte %zu", begin);
            return unreadable(err);
        }
    }
    l->at += l->at < len;
    return 0;
}

static int number(struct look *l, struct jsonscan *ret, struct err *err)
{
    bool plain;
    size_t n = jsonnum_scan(l->text.p + l->at, l->text.len - l->at, &plain);

    if (n == 0)
        return err_set(err, ERR_INVALID, "not JSON at byte %zu of %zu", l->at, l->text.len);
    if (n > JSONNUM_MAX_BYTES) {
        err_set(err, ERR_INVALID, "a number of over %d characters at byte %zu", JSONNUM_MAX_BYTES, l->at);
        return unreadable(err);
    }
    ret->odd_numbers |= !plain;
    l->at += n;
    return 0;
}

int jsonscan_check(struct sv text, int depth_max, struct jsonscan *ret, struct err *err)
{
    struct look l = {.text = text, .values = 1};

    *ret = (struct jsonscan){0};
    while (l.at < text.len) {
        char c = text.p[l.at];
        if (c == '"') {
            if (string(&l, err) < 0)
                return -1;
            continue;
        }
        if (c == '-' || (c >= '0' && c <= '9')) {
            if (number(&l, ret, err) < 0)
                return -1;
            continue;
        }
        l.depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        l.values += c == '{' || c == '[' || c == ',';
        if (l.depth > depth_max) {
            err_set(err, ERR_INVALID, "JSON nests deeper than %d levels", JSON_DEPTH_MAX);
            return unreadable(err);
        }
        if (l.values > JSON_VALUES_MAX) {
            err_set(err, ERR_INVALID, "JSON of more than %d values", JSON_VALUES_MAX);
            return unreadable(err);
        }
        l.at++;
    }
    return 0;
}

/* The next number of a text that jsonscan_check passed. */
static struct sv next_number(struct look *l)
{
    struct err ignored;

    while (l->at < l->text.len) {
        bool plain;
        char c = l->text.p[l->at];
        if (c == '"') {
            (void)string(l, &ignored);
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            struct sv n = {l->text.p + l->at, jsonnum_scan(l->text.p + l->at, l->text.len - l->at, &plain)};
            l->at += n.len;
            return n;
        } else {
            l->at++;
        }
    }
    return (struct sv){0};
}

static void keep(cJSON *node, struct look *l)
{
    cJSON *child;

    cJSON_ArrayForEach(child, node)
    {
        keep(child, l);
    }
    if (!cJSON_IsNumber(node))
        return;
    struct sv text = next_number(l);
    char print[JSONNUM_PRINT_BYTES];
    if (jsonnum_print(node->valuedouble, print) && sv_eq(text, print))
        return;
    node->valuestring = memory_must(cJSON_malloc(text.len + 1));
    memcpy(node->valuestring, text.p, text.len);
    node->valuestring[text.len] = '\0';
}

void jsonscan_keep_numbers(cJSON *tree, struct sv text)
{
    struct look l = {.text = text};

    keep(tree, &l);
}
