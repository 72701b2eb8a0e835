/* trainjob_launcher.c - refuse templates that use names or folders of the operator's own launcher. */
#include "operator/api/trainjob.h"

#include <string.h>

#define NAME TRAINJOB_LAUNCHER_NAME
#define FOLDER TRAINJOB_LAUNCHER_FOLDER

/* The rest of an absolute path after its first component `name`, "" or "/..."; NULL: the first component
 * differs. Repeated slashes and "." are ignored, as on the node. The path has no ".." component. */
static const char *below(const char *path, const char *name)
{
    size_t len = strlen(name);

    while (path[0] == '/' || (path[0] == '.' && (path[1] == '/' || !path[1])))
        path++;
    return strncmp(path, name, len) == 0 && (!path[len] || path[len] == '/') ? path + len : NULL;
}

static bool has_parent_part(const char *path)
{
    for (const char *p = path; (p = strstr(p, "..")); p += 2)
        if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
            return true;
    return false;
}

static int check_name(const struct json_at *item, struct err *err)
{
    struct json_at name = json_member(item, "name");

    if (cJSON_IsString(name.node) && strcmp(name.node->valuestring, NAME) == 0)
        return json_err(
            &name, err,
            "%s is the operator's own with torchrunConfig.launcher: Torchkeeper: expected another name",
            NAME);
    return 0;
}

static int check_mount_path(const struct json_at *mount, struct err *err)
{
    struct json_at path = json_member(mount, "mountPath");

    if (!cJSON_IsString(path.node))
        return 0;
    if (has_parent_part(path.node->valuestring))
        return json_err(&path, err,
                        "expected a path without .. with torchrunConfig.launcher: Torchkeeper, got \"%.80s\"",
                        path.node->valuestring);
    if (below(path.node->valuestring, &FOLDER[1]))
        return json_err(
            &path, err,
            "%s holds the launcher with torchrunConfig.launcher: Torchkeeper: expected another folder, "
            "got \"%.80s\"",
            FOLDER, path.node->valuestring);
    return 0;
}

/* Check that no item of a pod spec's list, or of a container's mounts, has our name. The plan appends to the list, so
 * another type is an error. */
static int check_names(const struct json_at *parent, const char *key, bool with_paths, struct err *err)
{
    struct json_at list = json_member(parent, key);

    if (json_expect_array(&list, INT32_MAX, err) < 0)
        return -1;
    for (struct json_at item = {0}; decode_next(&list, &item);)
        if (check_name(&item, err) < 0 || (with_paths && check_mount_path(&item, err) < 0))
            return -1;
    return 0;
}

static int check_mounts(const struct json_at *pod, const char *key, const cJSON *training, struct err *err)
{
    struct json_at list = json_member(pod, key);

    if (json_expect_array(&list, INT32_MAX, err) < 0)
        return -1;
    for (struct json_at container = {0}; decode_next(&list, &container);)
        if (check_names(&container, "volumeMounts", container.node == training, err) < 0)
            return -1;
    return 0;
}

int trainjob_check_launcher(const struct json_at *spec, const struct trainjob_spec *s, struct err *err)
{
    static const char *const LISTS[] = {"initContainers", "containers", "volumes"};
    struct json_at list = json_member(spec, "replicaSpecs");

    if (s->torchrun.launcher != LAUNCHER_TORCHKEEPER)
        return 0;
    for (struct json_at item = {0}; decode_next(&list, &item);) {
        struct json_at template = json_member(&item, "template");
        struct json_at pod = json_member(&template, "spec");
        const cJSON *training = trainjob_training_container(pod.node);
        for (size_t k = 0; k < ARRAY_LEN(LISTS); k++)
            if (check_names(&pod, LISTS[k], false, err) < 0)
                return -1;
        if (check_mounts(&pod, "initContainers", NULL, err) < 0 ||
            check_mounts(&pod, "containers", training, err) < 0)
            return -1;
    }
    return 0;
}
