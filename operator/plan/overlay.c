/* overlay.c - put the operator's fields over the user's JSON tree. */
#include "operator/plan/overlay.h"

void overlay_set(cJSON *object, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    cJSON_AddItemToObject(object, key, value);
}

cJSON *overlay_object(cJSON *parent, const char *key)
{
    cJSON *o = cJSON_GetObjectItemCaseSensitive(parent, key);

    if (cJSON_IsObject(o))
        return o;
    o = cJSON_CreateObject();
    overlay_set(parent, key, o);
    return o;
}
