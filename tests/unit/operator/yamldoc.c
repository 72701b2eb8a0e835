/* yamldoc.c - YAML in, YAML out, for golden tables. */
#include "yamldoc.h"

#include "common/fsutil.h"
#include "common/yaml.h"

#include <string.h>

cJSON *yamldoc_read(const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);
    cleanup_arena struct arena a = {0};
    struct yaml_tree *tree;

    if (fs_read(path, &text, err) < 0 || yaml_tree_parse(path, buf_str(&text), text.len, &a, &tree, err) < 0)
        return NULL;
    return yaml_json(tree);
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
