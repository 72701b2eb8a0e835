/* object.c - read and patch metadata that every object has: finalizers, owner references, deletion. */
#include "kube/object.h"

#include "common/json.h"
#include "common/memory.h"

#include <stdio.h>

static const cJSON *metadata(const cJSON *object)
{
    return json_find(object, (const char *[]){"metadata", NULL});
}

static const cJSON *finalizers(const cJSON *object)
{
    return json_find(object, (const char *[]){"metadata", "finalizers", NULL});
}

static bool is_called(const cJSON *item, const char *name)
{
    return cJSON_IsString(item) && strcmp(item->valuestring, name) == 0;
}

bool kube_object_is_deleting(const cJSON *object)
{
    return json_str(metadata(object), "deletionTimestamp") != NULL;
}

bool kube_object_has_finalizer(const cJSON *object, const char *finalizer)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, finalizers(object))
    {
        if (is_called(item, finalizer))
            return true;
    }
    return false;
}

char *kube_object_finalizer_patch(const cJSON *object, const char *finalizer, bool present)
{
    const char *version = json_str(metadata(object), "resourceVersion");
    const cJSON *item;

    if (kube_object_has_finalizer(object, finalizer) == present)
        return NULL;
    cleanup_json cJSON *patch = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(patch, "metadata");
    cJSON *list = cJSON_AddArrayToObject(meta, "finalizers");
    if (version)
        cJSON_AddStringToObject(meta, "resourceVersion", version);
    cJSON_ArrayForEach(item, finalizers(object))
    {
        if (!is_called(item, finalizer))
            cJSON_AddItemToArray(list, cJSON_Duplicate(item, true));
    }
    if (present)
        cJSON_AddItemToArray(list, cJSON_CreateString(finalizer));
    return memory_must(cJSON_PrintUnformatted(patch));
}

cJSON *kube_object_owner_reference(const cJSON *owner, const struct kube_resource *resource)
{
    const char *name = json_str(metadata(owner), "name"), *uid = json_str(metadata(owner), "uid");
    cJSON *ref = memory_must(cJSON_CreateObject());
    char version[160];

    snprintf(version, sizeof(version), "%s%s%s", resource->group, *resource->group ? "/" : "",
             resource->version);
    cJSON_AddStringToObject(ref, "apiVersion", version);
    cJSON_AddStringToObject(ref, "kind", resource->kind);
    cJSON_AddStringToObject(ref, "name", name ? name : "");
    cJSON_AddStringToObject(ref, "uid", uid ? uid : "");
    cJSON_AddTrueToObject(ref, "controller");
    cJSON_AddTrueToObject(ref, "blockOwnerDeletion");
    return ref;
}
