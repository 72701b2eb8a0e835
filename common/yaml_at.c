/* yaml_at.c - read typed values out of a YAML tree; errors name the path and the line. */
#include "common/yaml.h"

#include "common/buf.h"
#include "common/nearest.h"
#include "common/sv.h"

#include <stdio.h>
#include <string.h>

struct yaml_at yaml_root(const char *file, const struct yaml_tree *node)
{
    return (struct yaml_at){.node = node, .file = file};
}

bool yaml_is_null(const struct yaml_tree *node)
{
    static const char *const WORDS[] = {"", "~", "null", "Null", "NULL"};

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (node->kind == YAML_TREE_SCALAR && !node->quoted && strcmp(node->text, WORDS[i]) == 0)
            return true;
    return false;
}

struct yaml_at yaml_member(const struct yaml_at *at, const char *key)
{
    struct yaml_at member = {.parent = at, .key = key, .file = at->file};

    if (!at->node || at->node->kind != YAML_TREE_MAPPING)
        return member;
    for (const struct yaml_tree *c = at->node->first; c; c = c->next)
        if (strcmp(c->key, key) == 0 && !yaml_is_null(c))
            member.node = c;
    return member;
}

struct yaml_at yaml_item(const struct yaml_at *at, const struct yaml_tree *item, int index)
{
    return (struct yaml_at){.node = item, .parent = at, .index = index, .file = at->file};
}

static size_t path_of(const struct yaml_at *at, char *out, size_t size)
{
    if (!at->parent) {
        out[0] = '\0';
        return 0;
    }
    size_t len = path_of(at->parent, out, size);
    int n = at->key ? snprintf(out + len, size - len, "%s%.60s", len ? "." : "", at->key)
                    : snprintf(out + len, size - len, "[%d]", at->index);
    size_t want = len + (size_t)(n > 0 ? n : 0);
    return want < size ? want : size - 1;
}

/* The line of the node, or of its nearest parent that is present. */
static int line_of(const struct yaml_at *at)
{
    for (; at; at = at->parent)
        if (at->node)
            return at->node->line;
    return 1;
}

int yaml_err(const struct yaml_at *at, struct err *err, const char *fmt, ...)
{
    char path[128];
    char what[ERR_MSG_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    size_t len = path_of(at, path, sizeof(path));
    return err_set(err, ERR_INVALID, "%s:%d: %s%s%s", at->file, line_of(at), path, len ? ": " : "", what);
}

/* The node's value for "got ...", cut to fit a message. */
static const char *shown(const struct yaml_at *at, char *out, size_t size)
{
    if (at->node->kind == YAML_TREE_SCALAR)
        snprintf(out, size, "\"%.40s\"", at->node->text);
    else
        snprintf(out, size, "a %s", at->node->kind == YAML_TREE_MAPPING ? "mapping" : "list");
    return out;
}

static int refuse_key(const struct yaml_at *at, const char *const *keys, struct err *err)
{
    struct buf known = BUF_INIT(120);
    struct nearest near = nearest_to(sv_from(at->key));
    char hint[NEAREST_HINT_BYTES];

    for (int i = 0; keys[i]; i++)
        buf_printf(&known, NULL, "%s%s", i ? ", " : "", keys[i]);
    nearest_offer_all(&near, keys);
    yaml_err(at, err, "unknown key%s expected one of: %s", near.word ? nearest_hint(&near, "", hint) : ",",
             buf_str(&known));
    buf_release(&known);
    return -1;
}

int yaml_expect_mapping(const struct yaml_at *at, const char *const *keys, struct err *err)
{
    char got[64];

    if (!at->node)
        return 0;
    if (at->node->kind != YAML_TREE_MAPPING)
        return yaml_err(at, err, "expected a mapping, got %s", shown(at, got, sizeof(got)));
    for (const struct yaml_tree *c = at->node->first; c; c = c->next) {
        int i = 0;
        while (keys[i] && strcmp(keys[i], c->key) != 0)
            i++;
        struct yaml_at child = {.node = c, .parent = at, .key = c->key, .file = at->file};
        if (!keys[i])
            return refuse_key(&child, keys, err);
    }
    return 0;
}

int yaml_expect_sequence(const struct yaml_at *at, int min, int max, struct err *err)
{
    char got[64];
    int n = 0;

    if (at->node && at->node->kind != YAML_TREE_SEQUENCE)
        return yaml_err(at, err, "expected a list, got %s", shown(at, got, sizeof(got)));
    for (const struct yaml_tree *c = at->node ? at->node->first : NULL; c; c = c->next)
        n++;
    if (n < min || n > max)
        return yaml_err(at, err, "expected a list of %d..%d items, got %d", min, max, n);
    return 0;
}

/* The text of a scalar without quotes; else "". */
static const char *plain(const struct yaml_tree *node)
{
    return node->kind == YAML_TREE_SCALAR && !node->quoted ? node->text : "";
}

int yaml_item_i64(const struct yaml_at *item, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
    char got[64];

    if (!sv_i64(sv_from(plain(item->node)), min, max, ret))
        return yaml_err(item, err, "expected an integer %lld..%lld, got %s", (long long)min, (long long)max,
                        shown(item, got, sizeof(got)));
    return 0;
}

int yaml_get_i64(const struct yaml_at *at, const char *key, int64_t min, int64_t max, int64_t *ret,
                 struct err *err)
{
    struct yaml_at m = yaml_member(at, key);

    return m.node ? yaml_item_i64(&m, min, max, ret, err) : 0;
}

int yaml_get_bool(const struct yaml_at *at, const char *key, bool *ret, struct err *err)
{
    struct yaml_at m = yaml_member(at, key);
    char got[64];

    if (!m.node)
        return 0;
    bool yes = strcmp(plain(m.node), "true") == 0;
    if (!yes && strcmp(plain(m.node), "false") != 0)
        return yaml_err(&m, err, "expected true or false, got %s", shown(&m, got, sizeof(got)));
    *ret = yes;
    return 0;
}

int yaml_item_f64(const struct yaml_at *item, double min, double max, double *ret, struct err *err)
{
    char got[64];
    double v;

    if (item->node->kind != YAML_TREE_SCALAR || item->node->quoted ||
        !sv_f64(sv_from(item->node->text), &v) || !(v >= min && v <= max))
        return yaml_err(item, err, "expected a number %g..%g, got %s", min, max,
                        shown(item, got, sizeof(got)));
    *ret = v;
    return 0;
}

int yaml_get_f64(const struct yaml_at *at, const char *key, double min, double max, double *ret,
                 struct err *err)
{
    struct yaml_at m = yaml_member(at, key);

    return m.node ? yaml_item_f64(&m, min, max, ret, err) : 0;
}

int yaml_get_str(const struct yaml_at *at, const char *key, size_t max_len, const char **ret, struct err *err)
{
    struct yaml_at m = yaml_member(at, key);
    char got[64];

    if (!m.node)
        return 0;
    if (m.node->kind != YAML_TREE_SCALAR)
        return yaml_err(&m, err, "expected a text, got %s", shown(&m, got, sizeof(got)));
    if (strlen(m.node->text) > max_len || m.node->text[0] == '\0')
        return yaml_err(&m, err, "expected a text of 1..%zu characters, got %zu", max_len,
                        strlen(m.node->text));
    *ret = m.node->text;
    return 0;
}

int yaml_item_choice(const struct yaml_at *item, const char *const *names, int *ret, struct err *err)
{
    char got[64];
    char all[160] = "";
    char hint[NEAREST_HINT_BYTES];
    struct nearest near = {0};
    size_t len = 0;

    if (item->node->kind == YAML_TREE_SCALAR)
        near = nearest_to(sv_from(item->node->text));
    for (int i = 0; names[i]; i++) {
        if (item->node->kind == YAML_TREE_SCALAR && strcmp(item->node->text, names[i]) == 0) {
            *ret = i;
            return 0;
        }
        int n = snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", names[i]);
        len = len + (size_t)n < sizeof(all) ? len + (size_t)n : sizeof(all) - 1;
    }
    nearest_offer_all(&near, names);
    return yaml_err(item, err, "expected one of: %s; got %s%s", all, shown(item, got, sizeof(got)),
                    nearest_hint(&near, "", hint));
}

int yaml_get_choice(const struct yaml_at *at, const char *key, const char *const *names, int *ret,
                    struct err *err)
{
    struct yaml_at m = yaml_member(at, key);

    return m.node ? yaml_item_choice(&m, names, ret, err) : 0;
}

int yaml_require(const struct yaml_at *at, const char *key, struct err *err)
{
    struct yaml_at m = yaml_member(at, key);

    return m.node ? 0 : yaml_err(&m, err, "is required");
}
