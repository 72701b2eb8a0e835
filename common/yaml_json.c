/* yaml_json.c - convert a YAML tree to JSON, for configuration files that are decoded by the names of json.h. */
#include "common/yaml.h"

#include "common/sv.h"

#include <math.h>
#include <string.h>

static cJSON *scalar(const struct yaml_tree *node)
{
    const char *s = node->text;
    double number;

    if (node->quoted)
        return cJSON_CreateString(s);
    if (yaml_is_null(node))
        return cJSON_CreateNull();
    if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)
        return cJSON_CreateBool(*s == 't');
    /* Hexadecimal, infinities and the like stay text. */
    if (strspn(s, "+-.0123456789eE") == strlen(s) && sv_f64(sv_from(s), &number) && isfinite(number))
        return cJSON_CreateNumber(number);
    return cJSON_CreateString(s);
}

cJSON *yaml_json(const struct yaml_tree *node)
{
    if (node->kind == YAML_TREE_SCALAR)
        return scalar(node);
    cJSON *json = node->kind == YAML_TREE_MAPPING ? cJSON_CreateObject() : cJSON_CreateArray();
    for (const struct yaml_tree *c = node->first; c; c = c->next) {
        if (c->key)
            cJSON_AddItemToObject(json, c->key, yaml_json(c));
        else
            cJSON_AddItemToArray(json, yaml_json(c));
    }
    return json;
}
