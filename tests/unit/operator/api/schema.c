/* schema.c - walking the CRD's schema and making documents that fit it, or do not. */
#include "schema.h"
#include "test.h"
#include "yamldoc.h"

#include <stdio.h>
#include <string.h>

cJSON *schema_read(const char *crd_path)
{
    struct err err;
    cJSON *crd = yamldoc_read(crd_path, &err);

    if (!crd)
        fail_msg("%s: %s", crd_path, err.msg);
    return crd;
}

const cJSON *schema_part(const cJSON *crd, const char *part)
{
    const cJSON *versions = json_find(crd, (const char *[]){"spec", "versions", NULL});
    const cJSON *found = json_find(cJSON_GetArrayItem(versions, 0),
                                   (const char *[]){"schema", "openAPIV3Schema", "properties", part, NULL});

    assert_int_equal(cJSON_GetArraySize(versions), 1);
    assert_non_null(found);
    return found;
}

const char *schema_type(const cJSON *schema)
{
    if (cJSON_IsTrue(json_child(schema, "x-kubernetes-int-or-string")))
        return "int-or-string";
    const char *type = json_str(schema, "type");
    assert_non_null(type);
    return type;
}

bool schema_refuses(const cJSON *schema)
{
    const cJSON *rule;

    cJSON_ArrayForEach(rule, json_child(schema, "x-kubernetes-validations"))
    {
        const char *text = json_str(rule, "rule");
        if (text && strcmp(text, "false") == 0)
            return true;
    }
    return false;
}

static void walk(struct schema_field *f, void (*visit)(void *ctx, const struct schema_field *f), void *ctx)
{
    const cJSON *schema = f->schema;
    const cJSON *properties = json_child(schema, "properties");
    const cJSON *items = json_child(schema, "items");
    const cJSON *child;

    assert_true(f->n + 1 < SCHEMA_DEPTH_MAX);
    f->last =
        cJSON_IsTrue(json_child(schema, "x-kubernetes-preserve-unknown-fields")) || schema_refuses(schema);
    visit(ctx, f);
    if (f->last)
        return;
    int n = f->n++;
    if (items) {
        f->keys[n] = NULL;
        f->schema = items;
        walk(f, visit, ctx);
    }
    cJSON_ArrayForEach(child, properties)
    {
        f->keys[n] = child->string;
        f->schema = child;
        walk(f, visit, ctx);
    }
    f->n = n;
    f->schema = schema;
}

void schema_walk(const cJSON *crd, const char *part, void (*visit)(void *ctx, const struct schema_field *f),
                 void *ctx)
{
    struct schema_field f = {.keys = {part}, .n = 1, .schema = schema_part(crd, part)};

    walk(&f, visit, ctx);
}

void schema_path(const struct schema_field *f, const char *index, char out[SCHEMA_PATH_BYTES])
{
    size_t len = 0;

    for (int i = 0; i < f->n; i++) {
        len += (size_t)snprintf(out + len, SCHEMA_PATH_BYTES - len, "%s%s", f->keys[i] && i ? "." : "",
                                f->keys[i] ? f->keys[i] : index);
        assert_true(len < SCHEMA_PATH_BYTES);
    }
}

static bool is_required(const cJSON *schema, const char *key)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, json_child(schema, "required"))
    {
        if (strcmp(r->valuestring, key) == 0)
            return true;
    }
    return false;
}

static cJSON *sample_string(const cJSON *schema)
{
    const cJSON *words = json_child(schema, "enum");
    const char *format = json_str(schema, "format");

    if (words)
        return cJSON_CreateString(cJSON_GetArrayItem(words, 0)->valuestring);
    if (format && strcmp(format, "date-time") == 0)
        return cJSON_CreateString("2026-01-02T03:04:05Z");
    return cJSON_CreateString("node");
}

cJSON *schema_sample(const cJSON *schema, bool all)
{
    const char *type = schema_type(schema);
    const cJSON *child;

    if (strcmp(type, "boolean") == 0)
        return cJSON_CreateTrue();
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0 || strcmp(type, "int-or-string") == 0)
        return cJSON_CreateNumber(1);
    if (strcmp(type, "string") == 0)
        return sample_string(schema);
    if (strcmp(type, "array") == 0) {
        cJSON *list = cJSON_CreateArray();
        cJSON_AddItemToArray(list, schema_sample(json_child(schema, "items"), all));
        return list;
    }
    assert_string_equal(type, "object");
    cJSON *object = cJSON_CreateObject();
    cJSON_ArrayForEach(child, json_child(schema, "properties"))
    {
        if (all || is_required(schema, child->string))
            cJSON_AddItemToObject(object, child->string, schema_sample(child, all));
    }
    return object;
}

static cJSON *step_into(cJSON *at, const char *key, const cJSON *schema)
{
    cJSON *next = key ? cJSON_GetObjectItemCaseSensitive(at, key) : cJSON_GetArrayItem(at, 0);

    if (!next) {
        next = schema_sample(schema, false);
        if (key)
            cJSON_AddItemToObject(at, key, next);
        else
            cJSON_AddItemToArray(at, next);
    }
    const cJSON *enabled = json_child(json_child(schema, "properties"), "enabled");
    if (enabled && !cJSON_HasObjectItem(next, "enabled"))
        cJSON_AddTrueToObject(next, "enabled");
    return next;
}

void schema_put(cJSON *doc, const cJSON *crd, const struct schema_field *f, cJSON *value)
{
    const cJSON *schema = schema_part(crd, f->keys[0]);
    cJSON *at = cJSON_GetObjectItemCaseSensitive(doc, f->keys[0]);
    const char *last = f->keys[f->n - 1];

    assert_true(f->n > 1);
    for (int i = 1; i < f->n - 1; i++) {
        schema = f->keys[i] ? json_child(json_child(schema, "properties"), f->keys[i])
                            : json_child(schema, "items");
        at = step_into(at, f->keys[i], schema);
    }
    if (!last) {
        if (cJSON_GetArraySize(at) > 0)
            cJSON_ReplaceItemInArray(at, 0, value);
        else
            cJSON_AddItemToArray(at, value);
        return;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(at, last);
    cJSON_AddItemToObject(at, last, value);
}
