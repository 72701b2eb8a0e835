/* convert.c - what both kinds have in common: metadata, pod templates, and that the result is a job the operator takes. */
#include "cli/convert/parts.h"

#include "cli/jobfile.h"

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

struct json_at convert_top(const struct json_at *root, const char *key)
{
    struct json_at at = json_member(root, key);

    at.parent = NULL;
    return at;
}

cJSON *convert_object(cJSON *parent, const char *key)
{
    cJSON *o = cJSON_GetObjectItemCaseSensitive(parent, key);

    if (cJSON_IsObject(o))
        return o;
    cJSON_DeleteItemFromObjectCaseSensitive(parent, key);
    return cJSON_AddObjectToObject(parent, key);
}

void convert_copy(cJSON *to, const char *key, const struct json_at *from)
{
    if (!losses_is_set(from->node))
        return;
    cJSON_DeleteItemFromObjectCaseSensitive(to, key);
    cJSON_AddItemToObject(to, key, cJSON_Duplicate(from->node, true));
}

void convert_members(struct conversion *c, const struct json_at *from, const struct losses_field *fields,
                     cJSON *parent, const char *key)
{
    losses_members(c->losses, from, fields);
    for (const struct losses_field *f = fields; f->key; f++) {
        const struct json_at m = json_member(from, f->key);
        if (f->reason == LOSSES_SAME && losses_is_set(m.node))
            convert_copy(key ? convert_object(parent, key) : parent, f->key, &m);
    }
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
    return json_item_with(cJSON_GetObjectItemCaseSensitive(container, "env"), "name", name);
}

void convert_add_variable(cJSON *container, const char *name, const char *value)
{
    cJSON *env = cJSON_GetObjectItemCaseSensitive(container, "env");

    if (convert_variable(container, name))
        return;
    if (!cJSON_IsArray(env)) {
        cJSON_DeleteItemFromObjectCaseSensitive(container, "env");
        env = cJSON_AddArrayToObject(container, "env");
    }
    cJSON *v = cJSON_CreateObject();
    cJSON_AddStringToObject(v, "name", name);
    cJSON_AddStringToObject(v, "value", value);
    cJSON_AddItemToArray(env, v);
}

static const char QUEUE[] = "kueue.x-k8s.io/queue-name";

cJSON *convert_template(struct conversion *c, const struct json_at *template)
{
    static const struct losses_field METADATA[] = {{"labels", LOSSES_SAME},
                                                   {"annotations", LOSSES_SAME},
                                                   {"finalizers", LOSSES_SAME},
                                                   {"creationTimestamp", NULL},
                                                   {"name", NULL},
                                                   {"namespace", NULL},
                                                   {"generateName", NULL},
                                                   {0}};
    const struct json_at metadata = json_member(template, "metadata");
    const struct json_at spec = json_member(template, "spec");
    const struct json_at labels = json_member(&metadata, "labels");
    const struct json_at queue = json_member(&labels, QUEUE);
    cJSON *t = cJSON_CreateObject();

    losses_members(c->losses, template, LOSSES_METADATA_AND_SPEC);
    convert_members(c, &metadata, METADATA, t, "metadata");
    if (queue.node)
        losses_note(c->losses, &queue,
                    "kept: where Kueue manages plain pods, each pod waits for quota separately");
    if (cJSON_IsObject(spec.node))
        cJSON_AddItemToObject(t, "spec", cJSON_Duplicate(spec.node, true));
    else
        cJSON_AddObjectToObject(t, "spec");
    /* The replica's own policy has precedence there as it has here. */
    cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(t, "spec"), "restartPolicy");
    return t;
}

/* What users write themselves; the rest is the API server's. */
static void convert_metadata(struct conversion *c)
{
    static const struct losses_field FIELDS[] = {{"name", LOSSES_SAME},
                                                 {"generateName", LOSSES_SAME},
                                                 {"namespace", LOSSES_SAME},
                                                 {"labels", LOSSES_SAME},
                                                 {"annotations", LOSSES_SAME},
                                                 {"creationTimestamp", NULL},
                                                 {"generation", NULL},
                                                 {"managedFields", NULL},
                                                 {"resourceVersion", NULL},
                                                 {"selfLink", NULL},
                                                 {"uid", NULL},
                                                 {"finalizers", "belongs to the old job's controllers"},
                                                 {"ownerReferences", "belongs to the old job's owner"},
                                                 {0}};
    static const char LAST_APPLIED[] = "kubectl.kubernetes.io/last-applied-configuration";
    const struct json_at metadata = convert_top(c->root, "metadata");
    const struct json_at labels = json_member(&metadata, "labels");
    const struct json_at queue = json_member(&labels, QUEUE);

    convert_members(c, &metadata, FIELDS, c->metadata, NULL);
    cJSON *annotations = cJSON_GetObjectItemCaseSensitive(c->metadata, "annotations");
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, LAST_APPLIED);
    if (annotations && !annotations->child)
        cJSON_DeleteItemFromObjectCaseSensitive(c->metadata, "annotations");
    if (queue.node)
        losses_note(c->losses, &queue, "kept: where Kueue is installed, the job waits until Kueue admits it");
}

static void convert_suspend_note(struct conversion *c)
{
    const struct json_at spec = json_root(cJSON_GetObjectItemCaseSensitive(c->job, "spec"), "spec");
    const struct json_at suspend = json_member(&spec, "suspend");
    const char *name = json_str(c->metadata, "name");

    if (cJSON_IsTrue(suspend.node))
        losses_note(c->losses, &suspend, "kept: the job starts with `kubectl ptj resume %s`",
                    name ? name : "NAME");
}

/* The schema of the CRD asks for it; the decoder leaves it to the API server. */
static int check_images(const cJSON *job, struct err *err)
{
    const struct json_at root = json_root(job, NULL);
    const struct json_at spec = convert_top(&root, "spec");
    const struct json_at list = json_member(&spec, "replicaSpecs");
    const cJSON *node, *container;
    int i = 0;

    cJSON_ArrayForEach(node, list.node)
    {
        const struct json_at replica = json_item(&list, node, i++);
        const struct json_at template = json_member(&replica, "template");
        const struct json_at pod = json_member(&template, "spec");
        const struct json_at containers = json_member(&pod, "containers");
        int k = 0;
        cJSON_ArrayForEach(container, containers.node)
        {
            const struct json_at c = json_item(&containers, container, k++);
            const struct json_at image = json_member(&c, "image");
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
    static const struct losses_field ROOT[] = {{"apiVersion", NULL}, {"kind", NULL},   {"metadata", NULL},
                                               {"spec", NULL},       {"status", NULL}, {0}};
    const int kind = kind_index(object);
    const struct json_at root = json_root(object, NULL);
    const struct json_at spec = convert_top(&root, "spec");
    cleanup_arena struct arena arena = {0};
    struct conversion c = {
        .root = &root, .entries = entries, .losses = losses, .arena = &arena, .torchkeeper = torchkeeper};
    cleanup_json cJSON *job = new_job(&c);

    c.job = job;
    if (kind < 0 || !KINDS[kind].convert)
        return err_set(err, ERR_INVALID, "expected a PyTorchJob or a TrainJob");
    if (!cJSON_IsObject(spec.node))
        return json_err(&spec, err, "expected an object");
    losses_members(losses, &root, ROOT);
    convert_metadata(&c);
    const int failed = KINDS[kind].convert(&c, err);
    cJSON_Delete(c.known_runtime);
    if (failed)
        return -1;
    convert_launcher(&c);
    cleanup_trainjob struct trainjob *decoded = jobfile_decode(job, "default", err);
    if (!decoded || check_images(job, err) < 0)
        return err_wrap(err, "as a PyTorchTrainingJob");
    if (!decoded->spec.elastic
             .enabled) { /* what /scale, and so a PodDisruptionBudget, takes for the number of pods */
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
