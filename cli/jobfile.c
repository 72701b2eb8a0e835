/* jobfile.c - read objects from YAML files, and decode jobs that no API server has seen. */
#include "cli/jobfile.h"

#include "common/yaml.h"

#include <stdio.h>
#include <string.h>

static int add_object(const char *file, int line, cJSON *object, cJSON *entries, struct err *err)
{
    char place[512];

    if (!cJSON_IsObject(object)) {
        cJSON_Delete(object);
        return err_set(err, ERR_INVALID, "%.100s:%d: expected an object with apiVersion and kind", file,
                       line);
    }
    snprintf(place, sizeof(place), "%s:%d", file, line);
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddItemToObject(entry, "object", object);
    cJSON_AddStringToObject(entry, "place", place);
    cJSON_AddItemToArray(entries, entry);
    return 0;
}

const cJSON *jobfile_object(const cJSON *entry)
{
    return json_child(entry, "object");
}

const char *jobfile_place(const cJSON *entry)
{
    return json_str(entry, "place");
}

/* What kubectl get -o yaml prints of several objects. */
static const struct yaml_tree *items_of(const struct yaml_tree *document)
{
    const struct yaml_at root = yaml_root("", document);
    const struct yaml_at kind = yaml_member(&root, "kind");
    const struct yaml_at items = yaml_member(&root, "items");
    const size_t len = kind.node && kind.node->text ? strlen(kind.node->text) : 0;

    if (len < 4 || strcmp(kind.node->text + len - 4, "List") != 0 || !items.node ||
        items.node->kind != YAML_TREE_SEQUENCE)
        return NULL;
    return items.node;
}

int jobfile_parse(const char *file, const char *text, size_t len, cJSON *entries, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct yaml_tree *document;

    if (yaml_documents(file, text, len, &a, &document, err) < 0)
        return -1;
    for (; document; document = document->next) {
        const struct yaml_tree *items = items_of(document);
        if (!items && add_object(file, document->line, yaml_json(document), entries, err) < 0)
            return -1;
        for (const struct yaml_tree *i = items ? items->first : NULL; i; i = i->next)
            if (add_object(file, i->line, yaml_json(i), entries, err) < 0)
                return -1;
    }
    return 0;
}

struct trainjob *jobfile_decode(const cJSON *object, const char *ns, struct err *err)
{
    cleanup_json cJSON *copy = cJSON_Duplicate(object, true);
    cJSON *metadata = json_child(copy, "metadata");
    const struct json_at meta = json_root(metadata, "metadata");
    const char *prefix = json_str(metadata, "generateName");
    char made[256];

    if (prefix && prefix[0] && !json_str(metadata, "name")) {
        snprintf(made, sizeof(made), "%.240s" JOBFILE_SUFFIX, prefix);
        json_set(metadata, "name", cJSON_CreateString(made));
    }
    const struct json_at name = json_member(&meta, "name");
    char uid[DECODE_UID_BYTES + 1];

    if (!cJSON_IsObject(meta.node) || !cJSON_IsString(name.node) || !name.node->valuestring[0]) {
        json_err(&name, err, "expected a name, or a generateName");
        return NULL;
    }
    json_set(copy, "status", NULL);
    snprintf(uid, sizeof(uid), JOBFILE_UID "%s", name.node->valuestring);
    json_set(metadata, "uid", cJSON_CreateString(uid));
    json_set(metadata, "resourceVersion", cJSON_CreateString("1"));
    if (!json_str(metadata, "namespace"))
        json_set(metadata, "namespace", cJSON_CreateString(ns));
    cleanup_trainjob struct trainjob *job = trainjob_decode(TAKE(copy), err);
    if (!job)
        return NULL;
    if (job->spec_error) {
        err_set(err, ERR_INVALID, "%s", job->spec_error);
        return NULL;
    }
    return TAKE(job);
}
