/* mergepatch.c - objects member by member, anything else whole, null for what goes. */
#include "operator/plan/mergepatch.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Each value is looked at once; cJSON_Compare does so twice at each level, which doubles its time with each of 64. */
static bool same(const cJSON *a, const cJSON *b)
{
    const cJSON *x, *y;

    if ((a->type & 0xff) != (b->type & 0xff))
        return false;
    if (cJSON_IsString(a))
        return strcmp(a->valuestring, b->valuestring) == 0;
    if (cJSON_IsNumber(a))
        return a->valuedouble == b->valuedouble;
    for (x = a->child, y = b->child; x && y; x = x->next, y = y->next) {
        const cJSON *other = cJSON_IsObject(a) ? cJSON_GetObjectItemCaseSensitive(b, x->string) : y;
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
