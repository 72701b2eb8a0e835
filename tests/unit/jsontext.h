/* jsontext.h - test helper: JSON in C's strings, where ' stands for ". A text that has a " is JSON already. */
#ifndef TK_TESTS_UNIT_JSONTEXT_H
#define TK_TESTS_UNIT_JSONTEXT_H

#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy that is JSON; free. */
static inline char *jsontext(const char *text)
{
    char *copy = strdup(text);

    for (char *c = copy && !strchr(text, '"') ? copy : ""; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    return copy;
}

/* The tree of a text that has to be JSON; cJSON_Delete. */
static inline cJSON *jsontext_parse(const char *text)
{
    cleanup_free char *json = jsontext(text);
    struct err err;
    cJSON *tree = json_parse(json, strlen(json), &err);

    if (!tree) {
        fprintf(stderr, "%s: %s\n", err.msg, json);
        abort();
    }
    return tree;
}

#endif
