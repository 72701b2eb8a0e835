/* yaml_json.c - convert a YAML tree to JSON, for configuration files that are decoded by the names of json.h. */
#include "common/yaml.h"

#include "common/sv.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Whether `s` is this word in lower case, capitalised or in capitals; tRUE is text. */
static bool is_word(const char *s, const char *word)
{
    const char *rest = s[0] ? s + 1 : s;
    const size_t len = strlen(word);

    if (strlen(s) != len || strcasecmp(s, word) != 0)
        return false;
    return strcmp(rest, word + 1) == 0 || strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == len;
}

/* 1 or 0; -1: not a boolean. */
static int boolean(const char *s)
{
    static const char *const WORDS[] = {"false", "no", "off", "true", "yes", "on"};

    for (int i = 0; i < 6; i++)
        if (is_word(s, WORDS[i]))
            return i / 3;
    return -1;
}

/* 0644 and 0o644, as people write file modes. -1: not octal. */
static double octal(const char *s)
{
    double number = 0;

    if (s[0] != '0' || !s[1])
        return -1;
    s += s[1] == 'o' ? 2 : 1;
    if (!s[0] || strspn(s, "01234567") != strlen(s) || strlen(s) > 17)
        return -1;
    for (; *s; s++)
        number = number * 8 + (*s - '0');
    return number;
}

static cJSON *scalar(const struct yaml_tree *node)
{
    const char *s = node->text;
    double number;

    if (node->quoted)
        return cJSON_CreateString(s);
    if (yaml_is_null(node))
        return cJSON_CreateNull();
    if (boolean(s) >= 0)
        return cJSON_CreateBool(boolean(s));
    if (octal(s) >= 0)
        return cJSON_CreateNumber(octal(s));
    /* Hexadecimal, infinities and the like stay text. */
    if (strspn(s, "+-.0123456789eE") == strlen(s) && sv_f64(sv_from(s), &number) && isfinite(number))
        return cJSON_CreateNumber(number);
    return cJSON_CreateString(s);
}

cJSON *yaml_json(const struct yaml_tree *node)
{
    cJSON *json = node->kind == YAML_TREE_SCALAR    ? scalar(node)
                  : node->kind == YAML_TREE_MAPPING ? cJSON_CreateObject()
                                                    : cJSON_CreateArray();
    if (!cJSON_IsNumber(json))
        json->valueint = node->line;
    for (const struct yaml_tree *c = node->first; c; c = c->next) {
        if (c->key)
            cJSON_AddItemToObject(json, c->key, yaml_json(c));
        else
            cJSON_AddItemToArray(json, yaml_json(c));
    }
    return json;
}
