/* desired_pod.c - build a pod from the user's template: identity, labels, owner, restartPolicy, debug mode, resumeSpecs; avoid.c adds the nodes to avoid. */
#include "operator/plan/admission.h"
#include "operator/plan/avoid.h"
#include "operator/plan/desired.h"
#include "operator/plan/gang.h"
#include "operator/plan/guards.h"

#include <string.h>

/* The container that kubectl logs and exec use by default. */
static const char DEFAULT_CONTAINER[] = "kubectl.kubernetes.io/default-container";

static void set_text(cJSON *object, const char *key, const char *value)
{
    json_set(object, key, cJSON_CreateString(value));
}

static void set_number_text(cJSON *object, const char *key, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    set_text(object, key, text);
}

cJSON *desired_object(cJSON *parent, const char *key)
{
    cJSON *o = cJSON_GetObjectItemCaseSensitive(parent, key);

    if (cJSON_IsObject(o))
        return o;
    o = cJSON_CreateObject();
    json_set(parent, key, o);
    return o;
}

cJSON *desired_array(cJSON *parent, const char *key)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(parent, key);

    if (cJSON_IsArray(list))
        return list;
    list = cJSON_CreateArray();
    json_set(parent, key, list);
    return list;
}

/* Labels, annotations and finalizers come from the template, as for other controllers; the rest is the
 * operator's. */
static void add_metadata(struct planner *p, const struct slot *s, const cJSON *training, cJSON *pod)
{
    static const char *const COPIED[] = {"labels", "annotations", "finalizers"};
    const cJSON *from = json_child(s->spec->template, "metadata");
    cJSON *meta = cJSON_AddObjectToObject(pod, "metadata");

    set_text(meta, "name", s->name);
    set_text(meta, "namespace", p->job->ns);
    for (size_t i = 0; i < ARRAY_LEN(COPIED); i++) {
        const cJSON *m = json_child(from, COPIED[i]);
        if (m)
            cJSON_AddItemToObject(meta, COPIED[i], cJSON_Duplicate(m, true));
    }
    cJSON *annotations = desired_object(meta, "annotations");
    if (!cJSON_GetObjectItemCaseSensitive(annotations, DEFAULT_CONTAINER))
        set_text(annotations, DEFAULT_CONTAINER, json_str(training, "name"));
    set_text(annotations, ANNOTATION_TRAINING_CONTAINER, json_str(training, "name"));
    cJSON *labels = desired_object(meta, "labels");
    set_text(labels, LABEL_JOB, p->job->name);
    set_text(labels, LABEL_TYPE, s->spec->type);
    set_number_text(labels, LABEL_INDEX, s->index);
    set_number_text(labels, LABEL_ATTEMPT, p->st.attempt);
    set_number_text(labels, LABEL_RESTART, s->seen ? s->seen->restarts : 0);
    set_text(labels, LABEL_TEMPLATE_HASH, p->spec->hash);
    set_text(labels, LABEL_OWNER_NAME, p->job->name);
    if (guards_isolate(p))
        set_text(labels, LABEL_ISOLATED, p->job->name);
    desired_owner(p->job, meta);
}

/* ---- debug mode and resumeSpecs */

static const struct run_instead *instead(const struct run_mode *mode, const char *type)
{
    for (int i = 0; i < mode->n; i++)
        if (strcmp(mode->items[i].type, type) == 0)
            return &mode->items[i];
    return NULL;
}

/* Keep sidecars, which run beside the training. */
static void drop_init_containers(cJSON *spec)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(spec, "initContainers");
    cJSON *next;

    for (cJSON *c = list ? list->child : NULL; c; c = next) {
        next = c->next;
        if (!pod_is_sidecar(c))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, c));
    }
    if (cJSON_GetArraySize(list) == 0)
        cJSON_DeleteItemFromObjectCaseSensitive(spec, "initContainers");
}

static void set_words(cJSON *container, const char *key, const char *const *words, int n)
{
    json_set(container, key, cJSON_CreateStringArray(words, n));
}

/* Replace the template's command by that of debug mode, or else of resumeSpecs. */
static void apply_mode(const struct planner *p, const struct slot *s, cJSON *spec, cJSON *container)
{
    static const char *const SLEEP[] = {"sleep", "inf"};
    bool debug = p->spec->debug.enabled;
    const struct run_instead *r = NULL;

    if (debug)
        r = instead(&p->spec->debug, s->spec->type);
    else if (p->st.resume_count > 0)
        r = instead(&p->spec->resume, s->spec->type);
    if (r && r->skip_init)
        drop_init_containers(spec);
    if (debug) {
        bool own = r && r->n_command > 0;
        set_words(container, "command", own ? r->command : SLEEP, own ? r->n_command : 2);
        cJSON_DeleteItemFromObjectCaseSensitive(container, "args");
        return;
    }
    if (r && r->has_command)
        set_words(container, "command", r->command, r->n_command);
    if (r && r->has_args)
        set_words(container, "args", r->args, r->n_args);
}

/* ---- the pod */

cJSON *desired_pod(struct planner *p, const struct slot *s)
{
    cJSON *pod = cJSON_CreateObject();

    set_text(pod, "apiVersion", "v1");
    set_text(pod, "kind", "Pod");
    const cJSON *theirs = json_child(s->spec->template, "spec");
    add_metadata(p, s, trainjob_training_container(theirs), pod);
    cJSON *spec = cJSON_Duplicate(theirs, true);
    cJSON_AddItemToObject(pod, "spec", spec);
    set_text(spec, "restartPolicy", "Never");
    set_text(spec, "hostname", s->name);
    set_text(spec, "subdomain", desired_service_name(p->a, p->job->name));
    const cJSON *training = trainjob_training_container(spec);
    cJSON *c;
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(spec, "containers"))
    {
        if (c != training)
            continue;
        apply_mode(p, s, spec, c);
        if (desired_launcher_runs(p))
            desired_launcher_add(p, spec, c);
        desired_container(p, s, c);
    }
    admission_fill_pod(p, s, pod);
    gang_join(p, pod);
    avoid_apply(p, pod);
    return pod;
}

static bool has_shared_memory(const cJSON *container)
{
    const cJSON *m;

    cJSON_ArrayForEach(m, json_child(container, "volumeMounts"))
    {
        const char *path = json_str(m, "mountPath");
        if (path && strncmp(path, "/dev/shm", 8) == 0 && (!path[8] || strcmp(path + 8, "/") == 0))
            return true;
    }
    return false;
}

/* Whether a pod with GPUs mounts nothing at /dev/shm. With hostIPC it is the node's. */
static bool lacks_shared_memory(const cJSON *spec, const cJSON *container)
{
    bool gpus;

    (void)trainjob_gpus(container, &gpus);
    return gpus && !has_shared_memory(container) && !cJSON_IsTrue(json_child(spec, "hostIPC"));
}

void desired_pod_warnings(struct planner *p)
{
    for (int i = 0; i < p->spec->n_replica_specs; i++) {
        const struct replica_spec *r = &p->spec->replica_specs[i];
        const cJSON *spec = json_child(r->template, "spec");
        const cJSON *c = trainjob_training_container(spec);
        const char *dns = json_str(spec, "dnsPolicy");
        if (lacks_shared_memory(spec, c))
            planner_event(
                p, true, "MissingSharedMemory",
                "type %s: container %s uses GPUs and mounts nothing at /dev/shm; its 64 MiB are soon full: "
                "mount an emptyDir with medium Memory there",
                r->type, json_str(c, "name"));
        const bool host = cJSON_IsTrue(json_child(spec, "hostNetwork"));
        if (dns && strcmp(dns, "ClusterFirstWithHostNet") == 0)
            continue;
        if (host || (dns && strcmp(dns, "Default") == 0))
            planner_event(
                p, true, "HostNetworkDNS", "type %s: %s cannot resolve the job's own names", r->type,
                host ? "hostNetwork without dnsPolicy ClusterFirstWithHostNet" : "dnsPolicy Default");
    }
}
