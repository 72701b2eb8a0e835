/* localpod.c - take the command and the environment of a pod that the plan would create, for this machine. */
#include "cli/run/localpod.h"

#include "cli/shown.h"
#include "common/sv.h"
#include "operator/plan/desired.h"

#include <string.h>

static const char LOOPBACK[] = "127.0.0.1";

struct making {
    struct arena *a;
    const struct expand_scope *shell;
    const char *master; /* the name of pod 0 in the cluster */
    const cJSON *pod;
    struct localpod *ret;
};

/* ---- the environment */

static const char *own_value(void *ctx, const char *name)
{
    const struct localpod *pod = ctx;

    for (int i = pod->n_env; i-- > 0;)
        if (strcmp(pod->env[i].name, name) == 0)
            return pod->env[i].value;
    return NULL;
}

/* A word of the manifest as it is here. */
static const char *local_word(struct making *m, const char *text, struct err *err)
{
    const struct expand_scope own = {own_value, m->ret};
    const char *expanded = expand(m->a, text, &own, err);
    size_t host = strcspn(m->master, "."); /* pod 0's name for itself */

    if (expanded && strlen(expanded) == host && strncmp(expanded, m->master, host) == 0)
        return LOOPBACK;
    return expanded ? expand_replace(m->a, expanded, m->master, LOOPBACK, err) : NULL;
}

/* metadata.labels['a'] and the like: what stands between the quotes. */
static const char *subscript(struct making *m, const char *path, const char *field)
{
    const struct sv given = sv_from(path);
    const size_t before = strlen(field) + strlen("['");

    if (!sv_starts(given, field) || !sv_starts(sv_from(path + strlen(field)), "['") ||
        !sv_ends(given, "']") || given.len < before + strlen("']"))
        return NULL;
    return arena_strndup(m->a, path + before, given.len - before - strlen("']"));
}

static const char *field_value(struct making *m, const char *path)
{
    const cJSON *metadata = json_child(m->pod, "metadata");
    const char *label = subscript(m, path, "metadata.labels");
    const char *annotation = subscript(m, path, "metadata.annotations");

    if (label)
        return json_str(json_child(metadata, "labels"), label);
    if (annotation)
        return json_str(json_child(metadata, "annotations"), annotation);
    if (strcmp(path, "metadata.name") == 0 || strcmp(path, "metadata.namespace") == 0)
        return json_str(metadata, path + strlen("metadata."));
    if (strcmp(path, "status.podIP") == 0 || strcmp(path, "status.hostIP") == 0)
        return LOOPBACK;
    return NULL;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

/* valueFrom: the value, if it is known here, and in words its source. */
static void take_reference(struct making *m, const cJSON *source, struct localpod_variable *v)
{
    static const char *const KINDS[][2] = {{"secretKeyRef", "secret"}, {"configMapKeyRef", "config map"}};
    const char *field = json_str(json_child(source, "fieldRef"), "fieldPath");

    v->from = "the cluster";
    if (field) {
        v->value = field_value(m, field);
        v->from = v->value ? NULL : arena_printf(m->a, "the pod's field %s", field);
    }
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        const cJSON *ref = json_child(source, KINDS[i][0]);
        if (ref)
            v->from = arena_printf(m->a, "key %s of the %s %s", text_or(json_str(ref, "key"), "?"),
                                   KINDS[i][1], text_or(json_str(ref, "name"), "?"));
    }
    if (!v->value)
        v->value = m->shell->value(m->shell->ctx, v->name);
}

static bool is_left_out(const char *name)
{
    static const char *const LEFT_OUT[] = {LOCALPOD_LEFT_OUT};

    for (size_t i = 0; i < ARRAY_LEN(LEFT_OUT); i++)
        if (strcmp(name, LEFT_OUT[i]) == 0)
            return true;
    return false;
}

static int take_env(struct making *m, const cJSON *container, struct err *err)
{
    const cJSON *list = json_child(container, "env");
    const cJSON *all = json_child(container, "envFrom");
    const int n = cJSON_GetArraySize(list) + cJSON_GetArraySize(all);
    const cJSON *e;

    m->ret->env = arena_array(m->a, (size_t)n + 1, struct localpod_variable);
    cJSON_ArrayForEach(e, all)
    {
        const char *secret = json_str(json_child(e, "secretRef"), "name");
        const char *map = json_str(json_child(e, "configMapRef"), "name");
        m->ret->env[m->ret->n_env++] = (struct localpod_variable){
            .name = "envFrom",
            .from = arena_printf(m->a, "the %s %s", secret ? "secret" : "config map",
                                 text_or(secret ? secret : map, "?"))};
    }
    cJSON_ArrayForEach(e, list)
    {
        struct localpod_variable v = {.name = json_str(e, "name")};
        const cJSON *source = json_child(e, "valueFrom");
        if (!v.name || !v.name[0] || strchr(v.name, '=') || is_left_out(v.name))
            continue;
        if (source)
            take_reference(m, source, &v);
        else if (!(v.value = local_word(m, text_or(json_str(e, "value"), ""), err)))
            return -1;
        m->ret->env[m->ret->n_env++] = v;
    }
    return 0;
}

/* ---- the command */

static int take_argv(struct making *m, const cJSON *container, struct err *err)
{
    static const char *const KEYS[] = {"command", "args"};
    const cJSON *lists[2];
    const cJSON *w;
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        lists[i] = json_child(container, KEYS[i]);
    if (cJSON_GetArraySize(lists[0]) < 1)
        return err_set(
            err, ERR_INVALID,
            "pod %.63s: the container %.63s has no command, and that of its image is not known here: "
            "add the command, "
            "or set torchrunConfig.enabled: true",
            m->ret->name, json_str(container, "name"));
    m->ret->argv = arena_array(
        m->a, (size_t)(cJSON_GetArraySize(lists[0]) + cJSON_GetArraySize(lists[1])) + 1, const char *);
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        cJSON_ArrayForEach(w, lists[i])
        {
            const char *word = cJSON_IsString(w) ? w->valuestring : "";
            if (!(m->ret->argv[n++] = local_word(m, word, err)))
                return -1;
        }
    if (strcmp(m->ret->argv[0], TRAINJOB_LAUNCHER_PROGRAM) == 0)
        m->ret->argv[0] = "torchrun";
    return 0;
}

int localpod_make(const struct trainjob *job, int order, const struct expand_scope *shell, struct arena *a,
                  struct localpod *ret, struct err *err)
{
    const struct plan_input in = {
        .job = job, .launcher_image = "launcher", .tensorboard_image = "tensorboard"};
    struct planner p = {.in = &in, .job = job, .spec = &job->spec, .a = a};
    struct making m = {.a = a, .shell = shell, .ret = ret};

    *ret = (struct localpod){0};
    planner_fill_slots(&p);
    cleanup_json cJSON *pod = desired_pod(&p, &p.slots[order]);
    const cJSON *container = pod_training_container(pod);
    m.pod = pod;
    m.master = arena_printf(a, "%s.%s", p.slots[0].name, desired_service_name(a, job->name));
    ret->name = p.slots[order].name;
    const char *folder = json_str(container, "workingDir");
    ret->working_dir = folder && folder[0] ? arena_strdup(a, folder) : NULL;
    ret->spec = json_child(p.slots[order].spec->template, "spec");
    if (take_env(&m, container, err) < 0)
        return -1;
    /* The tree goes; what was taken from it by reference must not. */
    for (int i = 0; i < ret->n_env; i++) {
        ret->env[i].name = arena_strdup(a, ret->env[i].name);
        ret->env[i].value = ret->env[i].value ? arena_strdup(a, ret->env[i].value) : NULL;
    }
    return take_argv(&m, container, err);
}

int localpod_order(const struct trainjob *job, const char *type, int64_t index, struct err *err)
{
    int first = 0;

    for (int i = 0; i < job->spec.n_replica_specs; i++) {
        const struct replica_spec *r = &job->spec.replica_specs[i];
        if (!type || strcmp(type, r->type) == 0) {
            if (index < r->replicas)
                return first + (int)index;
            return err_set(err, ERR_INVALID, "--index: expected 0..%d, the type %.60s has %d pods; got %lld",
                           r->replicas - 1, r->type, r->replicas, (long long)index);
        }
        first += r->replicas;
    }
    return err_set(err, ERR_INVALID, "--type: the job has no type \"%.60s\", its first one is %.60s", type,
                   job->spec.replica_specs[0].type);
}

/* ---- as text */

void localpod_print(const struct localpod *pod, struct buf *out)
{
    cleanup_arena struct arena a = {0};

    buf_puts(out, "env", NULL);
    for (int i = 0; i < pod->n_env; i++) {
        const struct localpod_variable *v = &pod->env[i];
        if (!v->value)
            continue;
        buf_puts(out, " \\\n  ", NULL);
        shown_word(out, arena_printf(&a, "%s=%s", v->name, v->value));
    }
    for (int i = 0; pod->argv[i]; i++) {
        buf_puts(out, i ? " " : " \\\n  ", NULL);
        shown_word(out, pod->argv[i]);
    }
    buf_puts(out, "\n", NULL);
}
