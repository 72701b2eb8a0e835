/* convert.c - what both kinds have in common: metadata, pod templates, and that the result is a job the operator takes. */
#include "cli/convert/parts.h"

#include "cli/jobfile.h"
#include "common/sv.h"

#include <string.h>

static const struct {
    const char *api_version, *kind;
    enum convert_kind is;
    int (*convert)(struct conversion *c, struct err *err);
} KINDS[] = {
    {"kubeflow.org/v1", "PyTorchJob", CONVERT_JOB, convert_pytorchjob},
    {"trainer.kubeflow.org/v1alpha1", "TrainJob", CONVERT_JOB, convert_trainjob},
    {"trainer.kubeflow.org/v1alpha1", "TrainingRuntime", CONVERT_RUNTIME, NULL},
    {"trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", CONVERT_RUNTIME, NULL},
};

static int kind_index(const cJSON *object)
{
    const char *version = json_str(object, "apiVersion");
    const char *kind = json_str(object, "kind");

    for (size_t i = 0; version && kind && i < ARRAY_LEN(KINDS); i++)
        if (strcmp(version, KINDS[i].api_version) == 0 && strcmp(kind, KINDS[i].kind) == 0)
            return (int)i;
    return -1;
}

enum convert_kind convert_kind_of(const cJSON *object)
{
    const int i = kind_index(object);

    return i < 0 ? CONVERT_OTHER : KINDS[i].is;
}

const struct json_at *convert_at(struct conversion *c, const struct json_at *from, const char *path)
{
    struct sv rest = sv_from(path), name;

    while (sv_next(&rest, '.', &name)) {
        struct json_at *at = arena_new(c->arena, struct json_at);
        *at = json_member(from, arena_strndup(c->arena, name.p, name.len));
        from = at;
    }
    return from;
}

cJSON *convert_object(cJSON *parent, const char *key)
{
    cJSON *o = json_child(parent, key);

    if (!cJSON_IsObject(o))
        json_set(parent, key, o = cJSON_CreateObject());
    return o;
}

void convert_copy(cJSON *to, const char *key, const cJSON *from)
{
    if (losses_is_set(from))
        json_set(to, key, cJSON_Duplicate(from, true));
}

void convert_members(struct conversion *c, const struct json_at *from, const char *known,
                     const struct losses_field *lost, cJSON *parent, const char *key)
{
    struct sv rest = sv_from(known), word;

    losses_members(c->losses, from, known, lost);
    while (sv_next(&rest, ' ', &word)) {
        if (!sv_starts(word, "="))
            continue;
        const char *name = arena_strndup(c->arena, word.p + 1, word.len - 1);
        const cJSON *m = json_child(from->node, name);
        if (losses_is_set(m))
            convert_copy(key ? convert_object(parent, key) : parent, name, m);
    }
}

int convert_procs(struct conversion *c, const struct json_at *at, const char *key, const char **ret,
                  struct err *err)
{
    const char *word = json_str(at->node, key);
    int64_t n = 0;

    if (!word && json_get_i64(at, key, 1, 4096, &n, err) < 0)
        return -1;
    *ret = word ? word : n ? arena_printf(c->arena, "%lld", (long long)n) : *ret;
    return 0;
}

void convert_add_torchrun(struct conversion *c, const char *procs)
{
    cJSON *torchrun = cJSON_AddObjectToObject(c->spec, "torchrunConfig");

    cJSON_AddBoolToObject(torchrun, "enabled", false);
    cJSON_AddStringToObject(torchrun, "procPerNode", procs);
}

int convert_control(struct conversion *c, const struct json_at *from, const char *manager, struct err *err)
{
    const struct json_at at = json_member(from, "managedBy");
    const char *who = NULL;
    bool suspend = false;

    if (json_get_bool(from, "suspend", &suspend, err) < 0 || json_get_str(from, "managedBy", &who, err) < 0)
        return -1;
    if (suspend)
        cJSON_AddBoolToObject(c->spec, "suspend", true);
    if (who && strcmp(who, TRAINJOB_MULTIKUEUE) == 0)
        cJSON_AddStringToObject(c->spec, "managedBy", who);
    else if (who && who[0] && strcmp(who, manager) != 0)
        losses_add(c->losses, &at, "no controller \"%.100s\" takes jobs of this kind", who);
    return 0;
}

cJSON *convert_variable(const cJSON *container, const char *name)
{
    return json_item_with(json_child(container, "env"), "name", name);
}

void convert_add_variable(cJSON *container, const char *name, const char *value)
{
    cJSON *env = json_child(container, "env");

    if (convert_variable(container, name))
        return;
    if (!cJSON_IsArray(env))
        json_set(container, "env", env = cJSON_CreateArray());
    cJSON *v = cJSON_CreateObject();
    cJSON_AddStringToObject(v, "name", name);
    cJSON_AddStringToObject(v, "value", value);
    cJSON_AddItemToArray(env, v);
}

static void note_queue(struct conversion *c, const struct json_at *metadata, const char *note)
{
    const struct json_at labels = json_member(metadata, "labels");
    const struct json_at queue = json_member(&labels, "kueue.x-k8s.io/queue-name");

    if (queue.node)
        losses_note(c->losses, &queue, "%s", note);
}

cJSON *convert_template(struct conversion *c, const struct json_at *template)
{
    const struct json_at metadata = json_member(template, "metadata");
    const cJSON *spec = json_child(template->node, "spec");
    cJSON *t = cJSON_CreateObject();

    losses_members(c->losses, template, "metadata spec", NULL);
    convert_members(c, &metadata,
                    "=labels =annotations =finalizers creationTimestamp name namespace generateName", NULL, t,
                    "metadata");
    note_queue(c, &metadata, "kept: where Kueue manages plain pods, each pod waits for quota separately");
    json_set(t, "spec", cJSON_IsObject(spec) ? cJSON_Duplicate(spec, true) : cJSON_CreateObject());
    /* The replica's own policy has precedence there as it has here. */
    json_set(json_child(t, "spec"), "restartPolicy", NULL);
    return t;
}

/* What users write themselves; the rest is the API server's. */
static void convert_metadata(struct conversion *c)
{
    static const struct losses_field LOST[] = {{"finalizers", "belongs to the old job's controllers"},
                                               {"ownerReferences", "belongs to the old job's owner"},
                                               {0}};
    const struct json_at metadata = json_root(json_child(c->object, "metadata"), "metadata");

    convert_members(c, &metadata,
                    "=name =generateName =namespace =labels =annotations creationTimestamp generation "
                    "managedFields resourceVersion selfLink uid",
                    LOST, c->metadata, NULL);
    cJSON *annotations = json_child(c->metadata, "annotations");
    json_set(annotations, "kubectl.kubernetes.io/last-applied-configuration", NULL);
    if (annotations && !annotations->child)
        json_set(c->metadata, "annotations", NULL);
    note_queue(c, &metadata, "kept: where Kueue is installed, the job waits until Kueue admits it");
}

static void convert_suspend_note(struct conversion *c)
{
    const struct json_at spec = json_root(c->spec, "spec");
    const struct json_at suspend = json_member(&spec, "suspend");
    const char *name = json_str(c->metadata, "name");

    if (cJSON_IsTrue(suspend.node))
        losses_note(c->losses, &suspend, "kept: the job starts with `kubectl ptj resume %s`",
                    name ? name : "NAME");
}

/* The schema of the CRD asks for it; the decoder leaves it to the API server. */
static int check_images(struct conversion *c, struct err *err)
{
    const struct json_at spec = json_root(c->spec, "spec");
    const struct json_at list = json_member(&spec, "replicaSpecs");
    const cJSON *node, *container;
    int i = 0;

    cJSON_ArrayForEach(node, list.node)
    {
        const struct json_at replica = json_item(&list, node, i++);
        const struct json_at *containers = convert_at(c, &replica, "template.spec.containers");
        int k = 0;
        cJSON_ArrayForEach(container, containers->node)
        {
            const struct json_at at = json_item(containers, container, k++);
            const struct json_at image = json_member(&at, "image");
            if (!cJSON_IsString(image.node) || !image.node->valuestring[0])
                return json_err(&image, err, "expected an image");
        }
    }
    return 0;
}

/* Short members first, as people write them. */
static void sort_spec(cJSON *spec)
{
    static const char *const LAST[] = {"torchrunConfig", "elastic", "runPolicy", "replicaSpecs"};

    for (size_t i = 0; i < ARRAY_LEN(LAST); i++) {
        cJSON *m = cJSON_DetachItemFromObjectCaseSensitive(spec, LAST[i]);
        if (m)
            cJSON_AddItemToObject(spec, LAST[i], m);
    }
}

static cJSON *new_job(struct conversion *c)
{
    cJSON *job = cJSON_CreateObject();

    cJSON_AddStringToObject(job, "apiVersion", TRAINJOB_API_VERSION);
    cJSON_AddStringToObject(job, "kind", TRAINJOB_KIND);
    c->metadata = cJSON_AddObjectToObject(job, "metadata");
    c->spec = cJSON_AddObjectToObject(job, "spec");
    return job;
}

int convert_job(const cJSON *object, const cJSON *entries, bool torchkeeper, struct losses *losses,
                cJSON **ret, struct err *err)
{
    const int kind = kind_index(object);
    const struct json_at root = json_root(object, NULL);
    cleanup_arena struct arena arena = {0};
    struct conversion c = {.object = object,
                           .from = json_root(json_child(object, "spec"), "spec"),
                           .entries = entries,
                           .losses = losses,
                           .arena = &arena,
                           .torchkeeper = torchkeeper};
    cleanup_json cJSON *job = new_job(&c);

    c.job = job;
    if (kind < 0 || !KINDS[kind].convert)
        return err_set(err, ERR_INVALID, "expected a PyTorchJob or a TrainJob");
    if (!cJSON_IsObject(c.from.node))
        return json_err(&c.from, err, "expected an object");
    losses_members(losses, &root, "apiVersion kind metadata spec status", NULL);
    convert_metadata(&c);
    const int failed = KINDS[kind].convert(&c, err);
    cJSON_Delete(c.known_runtime);
    if (failed)
        return -1;
    convert_launcher(&c);
    cleanup_trainjob struct trainjob *decoded = jobfile_decode(job, "default", err);
    if (!decoded || check_images(&c, err) < 0)
        return err_wrap(err, "as a PyTorchTrainingJob");
    if (!decoded->spec.elastic
             .enabled) { /* what /scale and PodDisruptionBudgets take for the number of pods */
        cJSON *elastic = convert_object(c.spec, "elastic");
        cJSON_AddBoolToObject(elastic, "enabled", false);
        cJSON_AddNumberToObject(elastic, "expectedReplicas", decoded->spec.pods);
    }
    convert_suspend_note(&c);
    convert_peers(&c);
    sort_spec(c.spec);
    *ret = TAKE(job);
    return 0;
}
