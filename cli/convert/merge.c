/* merge.c - merge a patch into a pod template, as the API server merges it. */
#include "cli/convert/parts.h"

#include <string.h>

/* Lists whose items have names, and whether an item is merged or replaced. */
static const struct {
    const char *list, *name;
    bool merged;
} NAMED[] = {
    {"containers", "name", true},
    {"initContainers", "name", true},
    {"env", "name", false},
    {"volumes", "name", false},
    {"volumeMounts", "mountPath", false},
    {"imagePullSecrets", "name", false},
    {"schedulingGates", "name", false},
};

static void merge_items(cJSON *to, const cJSON *patch, const char *key, bool merged)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, patch)
    {
        cJSON *old = json_item_with(to, key, json_str(p, key));
        if (old && merged)
            convert_merge(old, p);
        else if (old)
            cJSON_ReplaceItemViaPointer(to, old, cJSON_Duplicate(p, true));
        else
            cJSON_AddItemToArray(to, cJSON_Duplicate(p, true));
    }
}

static void merge_member(cJSON *to, const cJSON *m)
{
    cJSON *old = json_child(to, m->string);

    if (cJSON_IsObject(old) && cJSON_IsObject(m)) {
        convert_merge(old, m);
        return;
    }
    for (size_t i = 0; cJSON_IsArray(old) && cJSON_IsArray(m) && i < ARRAY_LEN(NAMED); i++)
        if (strcmp(m->string, NAMED[i].list) == 0) {
            merge_items(old, m, NAMED[i].name, NAMED[i].merged);
            return;
        }
    json_set(to, m->string, cJSON_Duplicate(m, true));
}

void convert_merge(cJSON *to, const cJSON *patch)
{
    const cJSON *m;

    if (!cJSON_IsObject(to) || !cJSON_IsObject(patch))
        return;
    cJSON_ArrayForEach(m, patch) if (!cJSON_IsNull(m)) merge_member(to, m);
}
