/* desired_tensorboard.c - build the Deployment and the Service of TensorBoard. */
#include "operator/plan/desired.h"
#include "operator/plan/guards.h"

#include <string.h>

enum { NOBODY = 65534 };

/* TensorBoard's pods do not count as the job's pods: they have a separate label. Returns the labels. */
static cJSON *add_selector(struct planner *p, cJSON *parent, const char *key)
{
    cJSON *labels = cJSON_AddObjectToObject(parent, key);

    cJSON_AddStringToObject(labels, LABEL_TENSORBOARD, p->job->name);
    return labels;
}

cJSON *desired_tensorboard_service(struct planner *p)
{
    cJSON *o = desired_child(p, "v1", "Service", desired_tensorboard_name(p->a, p->job->name), NULL);
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");

    cJSON_AddStringToObject(spec, "type", "ClusterIP");
    (void)add_selector(p, spec, "selector");
    desired_port(spec, "port", "http", TENSORBOARD_PORT);
    return o;
}

cJSON *desired_tensorboard_affinity(const struct planner *p)
{
    const struct pod *master = p->slots[0].pod;
    cJSON *affinity = cJSON_CreateObject();

    if (!master || !master->node[0])
        return affinity;
    cJSON *term = cJSON_Parse("{\"weight\":100,\"preference\":{\"matchFields\":[{\"key\":\"metadata.name\","
                              "\"operator\":\"In\"}]}}");
    cJSON *match = json_child(json_child(term, "preference"), "matchFields")->child;
    cJSON_AddItemToArray(cJSON_AddArrayToObject(match, "values"), cJSON_CreateString(master->node));
    cJSON *node = cJSON_AddObjectToObject(affinity, "nodeAffinity");
    cJSON_AddItemToArray(cJSON_AddArrayToObject(node, "preferredDuringSchedulingIgnoredDuringExecution"),
                         term);
    return affinity;
}

/* /logs/<pvc>[/<path>] */
static const char *log_path(struct planner *p, const struct tensorboard_log *log)
{
    return arena_printf(p->a, "/logs/%s%s%s", log->pvc, log->path[0] ? "/" : "", log->path);
}

static void add_arg(cJSON *args, const char *arg)
{
    cJSON_AddItemToArray(args, cJSON_CreateString(arg));
}

static void add_log_dirs(struct planner *p, cJSON *args)
{
    const struct tensorboard_spec *tb = &p->spec->tensorboard;
    const char *list = "";

    if (tb->n_logs == 1) {
        add_arg(args, arena_printf(p->a, "--logdir=%s", log_path(p, &tb->logs[0])));
        return;
    }
    for (int i = 0; i < tb->n_logs; i++) {
        const struct tensorboard_log *log = &tb->logs[i];
        list = arena_printf(p->a, "%s%s%s%s%s:%s", list, i ? "," : "", log->pvc, log->path[0] ? "/" : "",
                            log->path, log_path(p, log));
    }
    add_arg(args, arena_printf(p->a, "--logdir_spec=%s", list));
}

static void add_volumes(struct planner *p, cJSON *pod, cJSON *container)
{
    cJSON *volumes = cJSON_AddArrayToObject(pod, "volumes");
    cJSON *mounts = cJSON_AddArrayToObject(container, "volumeMounts");
    const struct tensorboard_spec *tb = &p->spec->tensorboard;
    int n = 0;

    for (int i = 0; i < tb->n_logs; i++) {
        bool known = false;
        for (int k = 0; k < i; k++)
            known |= strcmp(tb->logs[k].pvc, tb->logs[i].pvc) == 0;
        if (known)
            continue;
        char *name = arena_printf(p->a, "logs-%d", n++);
        cJSON *v = cJSON_CreateObject();
        cJSON_AddStringToObject(v, "name", name);
        cJSON_AddStringToObject(cJSON_AddObjectToObject(v, "persistentVolumeClaim"), "claimName",
                                tb->logs[i].pvc);
        cJSON_AddItemToArray(volumes, v);
        cJSON *m = cJSON_CreateObject();
        cJSON_AddStringToObject(m, "name", name);
        cJSON_AddStringToObject(m, "mountPath", arena_printf(p->a, "/logs/%s", tb->logs[i].pvc));
        cJSON_AddBoolToObject(m, "readOnly", true);
        cJSON_AddItemToArray(mounts, m);
    }
    cJSON_AddItemToArray(volumes, cJSON_Parse("{\"name\":\"tmp\",\"emptyDir\":{}}"));
    cJSON_AddItemToArray(mounts, cJSON_Parse("{\"name\":\"tmp\",\"mountPath\":\"/tmp\"}"));
}

/* The training container's user or group, who wrote the logs and can read them. */
static int64_t inherited_id(struct planner *p, const char *key)
{
    const cJSON *spec = json_child(p->slots[0].spec->template, "spec");
    const cJSON *of_pod = json_child(spec, "securityContext");
    const cJSON *of_container = json_child(trainjob_training_container(spec), "securityContext");

    return json_i64(of_container, key, json_i64(of_pod, key, NOBODY));
}

static void add_security(struct planner *p, cJSON *pod, cJSON *container)
{
    int64_t user = inherited_id(p, "runAsUser");
    cJSON *of_pod = cJSON_AddObjectToObject(pod, "securityContext");

    cJSON_AddNumberToObject(of_pod, "runAsUser", (double)user);
    cJSON_AddNumberToObject(of_pod, "runAsGroup", (double)inherited_id(p, "runAsGroup"));
    cJSON_AddBoolToObject(of_pod, "runAsNonRoot", user != 0);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(of_pod, "seccompProfile"), "type", "RuntimeDefault");
    cJSON_AddItemToObject(
        container, "securityContext",
        cJSON_Parse("{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}}"));
}

static cJSON *tensorboard_container(struct planner *p)
{
    const struct tensorboard_spec *tb = &p->spec->tensorboard;
    cJSON *c = cJSON_CreateObject();

    cJSON_AddStringToObject(c, "name", "tensorboard");
    cJSON_AddStringToObject(c, "image", tb->image ? tb->image : p->in->tensorboard_image);
    add_arg(cJSON_AddArrayToObject(c, "command"), "tensorboard");
    cJSON *args = cJSON_AddArrayToObject(c, "args");
    add_log_dirs(p, args);
    add_arg(args, "--bind_all");
    add_arg(args, arena_printf(p->a, "--port=%d", TENSORBOARD_PORT));
    desired_port(c, "containerPort", "http", TENSORBOARD_PORT);
    cJSON_AddItemToObject(c, "env",
                          cJSON_Parse("[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"void\"},"
                                      "{\"name\":\"HOME\",\"value\":\"/tmp\"}]"));
    if (tb->resources)
        cJSON_AddItemToObject(c, "resources", cJSON_Duplicate(tb->resources, true));
    cJSON *probe = cJSON_Parse("{\"httpGet\":{\"path\":\"/\"},\"periodSeconds\":5,\"timeoutSeconds\":5}");
    cJSON_AddNumberToObject(json_child(probe, "httpGet"), "port", TENSORBOARD_PORT);
    cJSON_AddItemToObject(c, "readinessProbe", probe);
    return c;
}

static void add_pod_spec(struct planner *p, cJSON *template, bool with_node)
{
    static const char *const COPIED[] = {"tolerations", "nodeSelector", "imagePullSecrets"};
    const cJSON *from = json_child(p->slots[0].spec->template, "spec");
    cJSON *pod = cJSON_AddObjectToObject(template, "spec");
    cJSON *container = tensorboard_container(p);

    for (size_t i = 0; i < ARRAY_LEN(COPIED); i++) {
        const cJSON *m = json_child(from, COPIED[i]);
        if (m)
            cJSON_AddItemToObject(pod, COPIED[i], cJSON_Duplicate(m, true));
    }
    cJSON_AddBoolToObject(pod, "automountServiceAccountToken", false);
    cJSON_AddBoolToObject(pod, "enableServiceLinks", false);
    if (with_node)
        cJSON_AddItemToObject(pod, "affinity", desired_tensorboard_affinity(p));
    add_security(p, pod, container);
    add_volumes(p, pod, container);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(pod, "containers"), container);
}

cJSON *desired_tensorboard_deployment(struct planner *p, int replicas, const char *hash)
{
    cJSON *o = desired_child(p, "apps/v1", "Deployment", desired_tensorboard_name(p->a, p->job->name), hash);
    cJSON *spec = cJSON_AddObjectToObject(o, "spec");

    if (replicas >= 0)
        cJSON_AddNumberToObject(spec, "replicas", replicas);
    cJSON_AddNumberToObject(spec, "revisionHistoryLimit", 0);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(spec, "strategy"), "type", "Recreate");
    (void)add_selector(p, cJSON_AddObjectToObject(spec, "selector"), "matchLabels");
    cJSON *template = cJSON_AddObjectToObject(spec, "template");
    cJSON *labels = add_selector(p, cJSON_AddObjectToObject(template, "metadata"), "labels");
    if (replicas >= 0 && guards_isolate(p))
        cJSON_AddStringToObject(labels, LABEL_ISOLATED, p->job->name);
    add_pod_spec(p, template, replicas > 0);
    return o;
}
