/* mergepatch.c - compute the JSON merge patch between two documents. */
#include "operator/plan/mergepatch.h"

#include <stdbool.h>
#include <stddef.h>

/* Compares each value once. cJSON_Compare compares objects in both directions, which doubles its time with
 * each level. */
static bool same(const cJSON *a, const cJSON *b)
{
    bool objects = cJSON_IsObject(a) && cJSON_IsObject(b);
    const cJSON *x, *y;

    if (!objects && !(cJSON_IsArray(a) && cJSON_IsArray(b)))
        return cJSON_Compare(a, b, true); /* scalars, or values of different types */
    for (x = a->child, y = b->child; x && y; x = x->next, y = y->next) {
        const cJSON *other = objects ? cJSON_GetObjectItemCaseSensitive(b, x->string) : y;
        if (!other || !same(x, other))
            return false;
    }
    return !x && !y;
}

cJSON *mergepatch_diff(const cJSON *from, const cJSON *to)
{
    const cJSON *m;
    cJSON *patch = cJSON_CreateObject();

    from = cJSON_IsObject(from) ? from : NULL;
    cJSON_ArrayForEach(m, to)
    {
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(from, m->string);
        cJSON *change = NULL;
        if (cJSON_IsObject(old) && cJSON_IsObject(m))
            change = mergepatch_diff(old, m);
        else if (!old || !same(old, m))
            change = cJSON_Duplicate(m, true);
        if (change)
            cJSON_AddItemToObject(patch, m->string, change);
    }
    cJSON_ArrayForEach(m, from)
    {
        if (!cJSON_IsNull(m) && !cJSON_GetObjectItemCaseSensitive(to, m->string))
            cJSON_AddNullToObject(patch, m->string);
    }
    if (patch->child)
        return patch;
    cJSON_Delete(patch);
    return NULL;
}
