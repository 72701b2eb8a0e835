/* desired_launcher.c - the init container that copies the operator's launcher, its volume and its mounts. */
#include "operator/plan/desired.h"

bool desired_launcher_runs(const struct planner *p)
{
    return p->spec->torchrun.launcher == LAUNCHER_TORCHKEEPER && !p->spec->debug.enabled;
}

static void add_mount(cJSON *container, bool read_only)
{
    cJSON *m = cJSON_Parse("{\"name\":\"" TRAINJOB_LAUNCHER_NAME
                           "\",\"mountPath\":\"" TRAINJOB_LAUNCHER_FOLDER "\"}");

    if (read_only)
        cJSON_AddBoolToObject(m, "readOnly", true);
    cJSON_AddItemToArray(desired_array(container, "volumeMounts"), m);
}

/* For the restricted Pod Security level. The user is the training container's, or else the image's: a policy
 * may allow only certain users. runAsNonRoot is always set, since the pod's value may contradict the training
 * container's. */
static void add_security(const cJSON *spec, const cJSON *training, cJSON *c)
{
    const cJSON *of_container = json_child(json_child(training, "securityContext"), "runAsUser");
    const cJSON *user = cJSON_IsNumber(of_container)
                            ? of_container
                            : json_child(json_child(spec, "securityContext"), "runAsUser");
    cJSON *s = cJSON_Parse(
        "{\"allowPrivilegeEscalation\":false,\"readOnlyRootFilesystem\":true,"
        "\"capabilities\":{\"drop\":[\"ALL\"]},\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}");

    cJSON_AddItemToObject(c, "securityContext", s);
    if (cJSON_IsNumber(user))
        cJSON_AddItemToObject(s, "runAsUser", cJSON_Duplicate(user, true));
    cJSON_AddBoolToObject(s, "runAsNonRoot", !cJSON_IsNumber(user) || user->valuedouble != 0);
}

/* The file has 0.2 MB. A container runtime needs this much memory to start any program; the copy is in the page
 * cache, which the kernel can free. Requests = limits, so that a Guaranteed pod stays Guaranteed. Limit the disk only if the training container
 * does: the kubelet uses the containers' limits for the whole pod, and would evict a pod whose training has
 * no limit. */
static void add_resources(const cJSON *training, cJSON *c)
{
    const cJSON *limits = json_child(json_child(training, "resources"), "limits");
    cJSON *amounts = cJSON_Parse("{\"cpu\":\"100m\",\"memory\":\"32Mi\"}");
    cJSON *resources = cJSON_AddObjectToObject(c, "resources");

    if (json_child(limits, "ephemeral-storage"))
        cJSON_AddStringToObject(amounts, "ephemeral-storage", "16Mi");
    cJSON_AddItemToObject(resources, "requests", amounts);
    cJSON_AddItemToObject(resources, "limits", cJSON_Duplicate(amounts, true));
}

static cJSON *init_container(const struct planner *p, const cJSON *spec, const cJSON *training)
{
    cJSON *c = cJSON_CreateObject();

    cJSON_AddStringToObject(c, "name", TRAINJOB_LAUNCHER_NAME);
    cJSON_AddStringToObject(c, "image", p->in->launcher_image);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(c, "command"), cJSON_CreateString("/torchrun"));
    cJSON_AddItemToArray(cJSON_AddArrayToObject(c, "args"),
                         cJSON_CreateString("--install-to=" TRAINJOB_LAUNCHER_PROGRAM));
    add_resources(training, c);
    add_security(spec, training, c);
    cJSON_AddStringToObject(c, "terminationMessagePolicy", "FallbackToLogsOnError");
    add_mount(c, false);
    return c;
}

void desired_launcher_add(const struct planner *p, cJSON *spec, cJSON *container)
{
    cJSON *volume = cJSON_Parse("{\"name\":\"" TRAINJOB_LAUNCHER_NAME "\",\"emptyDir\":{}}");

    cJSON_InsertItemInArray(desired_array(spec, "initContainers"), 0, init_container(p, spec, container));
    cJSON_AddItemToArray(desired_array(spec, "volumes"), volume);
    add_mount(container, true);
}
