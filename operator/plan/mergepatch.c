/* mergepatch.c - objects member by member, anything else whole, null for what goes. */
#include "operator/plan/mergepatch.h"

#include <stdbool.h>
#include <stddef.h>

cJSON *mergepatch_diff(const cJSON *from, const cJSON *to)
{
    const cJSON *m;
    cJSON *patch = cJSON_CreateObject();

    from = cJSON_IsObject(from) ? from : NULL;
    cJSON_ArrayForEach(m, to)
    {
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(from, m->string);
        cJSON *change = NULL;
        if (old && cJSON_Compare(old, m, true))
            continue;
        change =
            cJSON_IsObject(old) && cJSON_IsObject(m) ? mergepatch_diff(old, m) : cJSON_Duplicate(m, true);
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
