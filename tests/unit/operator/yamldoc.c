/* yamldoc.c - YAML in, YAML out, for golden tables. */
#include "yamldoc.h"

#include "common/fsutil.h"
#include "common/sv.h"

#include <string.h>
#include <yaml.h>

enum { FILE_MAX = 1 << 20, DEPTH_MAX = 32 };

static cJSON *scalar(const yaml_event_t *e)
{
    const char *s = (const char *)e->data.scalar.value;
    struct sv v = {s, e->data.scalar.length};
    double number;

    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return cJSON_CreateString(s);
    if (v.len == 0 || sv_eq(v, "null") || sv_eq(v, "~"))
        return cJSON_CreateNull();
    if (sv_eq(v, "true") || sv_eq(v, "false"))
        return cJSON_CreateBool(sv_eq(v, "true"));
    if (strchr("-.0123456789", s[0]) && sv_f64(v, &number))
        return cJSON_CreateNumber(number);
    return cJSON_CreateString(s);
}

static cJSON *read_node(yaml_parser_t *p, int depth, bool *end, struct err *err);

static cJSON *read_list(yaml_parser_t *p, int depth, struct err *err)
{
    cleanup_json cJSON *list = cJSON_CreateArray();
    bool end = false;

    for (;;) {
        cJSON *item = read_node(p, depth, &end, err);
        if (end)
            return TAKE(list);
        if (!item)
            return NULL;
        cJSON_AddItemToArray(list, item);
    }
}

static cJSON *read_map(yaml_parser_t *p, int depth, struct err *err)
{
    cleanup_json cJSON *map = cJSON_CreateObject();
    bool end = false;

    for (;;) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e)) {
            err_set(err, ERR_INVALID, "line %zu: %s", p->problem_mark.line + 1, p->problem);
            return NULL;
        }
        if (e.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&e);
            return TAKE(map);
        }
        cleanup_free char *key =
            e.type == YAML_SCALAR_EVENT ? strdup((const char *)e.data.scalar.value) : NULL;
        yaml_event_delete(&e);
        if (!key) {
            err_set(err, ERR_INVALID, "line %zu: expected a key", p->mark.line + 1);
            return NULL;
        }
        cJSON *value = read_node(p, depth, &end, err);
        if (!value)
            return NULL;
        cJSON_AddItemToObject(map, key, value);
    }
}

static cJSON *read_node(yaml_parser_t *p, int depth, bool *end, struct err *err)
{
    yaml_event_t e;
    cJSON *out = NULL;

    if (!yaml_parser_parse(p, &e)) {
        err_set(err, ERR_INVALID, "line %zu: %s", p->problem_mark.line + 1, p->problem);
        return NULL;
    }
    yaml_event_type_t type = e.type;
    if (type == YAML_SCALAR_EVENT)
        out = scalar(&e);
    size_t line = e.start_mark.line + 1;
    yaml_event_delete(&e);
    if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT)
        return read_node(p, depth, end, err);
    if (type == YAML_SEQUENCE_END_EVENT) {
        *end = true;
        return NULL;
    }
    if (out)
        return out;
    if (depth < DEPTH_MAX && type == YAML_SEQUENCE_START_EVENT)
        return read_list(p, depth + 1, err);
    if (depth < DEPTH_MAX && type == YAML_MAPPING_START_EVENT)
        return read_map(p, depth + 1, err);
    err_set(err, ERR_INVALID, "line %zu: expected a value", line);
    return NULL;
}

cJSON *yamldoc_read(const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(FILE_MAX);
    yaml_parser_t p;
    bool end = false;

    if (fs_read(path, &text, err) < 0)
        return NULL;
    yaml_parser_initialize(&p);
    yaml_parser_set_input_string(&p, (const unsigned char *)buf_str(&text), text.len);
    cJSON *tree = read_node(&p, 0, &end, err);
    yaml_parser_delete(&p);
    if (!tree)
        err_wrap(err, "%s", path);
    return tree;
}

static int write_node(const cJSON *node, int indent, bool in_list, struct buf *out, struct err *err)
{
    const cJSON *child;
    bool first = true;

    if (!node->child || !(cJSON_IsObject(node) || cJSON_IsArray(node)))
        return buf_puts(out, " ", err) < 0 || json_write(node, out, err) < 0 || buf_puts(out, "\n", err) < 0
                   ? -1
                   : 0;
    if (!in_list && buf_puts(out, "\n", err) < 0)
        return -1;
    cJSON_ArrayForEach(child, node)
    {
        int pad = first && in_list ? 1 : indent;
        first = false;
        if (buf_printf(out, err, "%*s%s%s", pad, "", cJSON_IsArray(node) ? "-" : child->string,
                       cJSON_IsArray(node) ? "" : ":") < 0)
            return -1;
        bool nested = cJSON_IsArray(child) && !cJSON_IsArray(node);
        if (write_node(child, nested ? indent : indent + 2, cJSON_IsArray(node), out, err) < 0)
            return -1;
    }
    return 0;
}

int yamldoc_write(const cJSON *node, struct buf *out, struct err *err)
{
    const cJSON *child;

    cJSON_ArrayForEach(child, node)
    {
        if (buf_printf(out, err, "%s:", child->string) < 0 ||
            write_node(child, cJSON_IsArray(child) ? 0 : 2, false, out, err) < 0)
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
