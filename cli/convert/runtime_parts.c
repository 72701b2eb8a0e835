/* runtime_parts.c - read a TrainingRuntime or ClusterTrainingRuntime whose mlPolicy is torch. */
#include "cli/convert/runtime_parts.h"

#include <string.h>

static const char STEP_LABEL[] = "trainer.kubeflow.org/trainjob-ancestor-step";

/* Labels and annotations of the JobSet are the job's here; those of the TrainJob have precedence. */
static void add_metadata(struct conversion *c, const struct json_at *from)
{
    static const struct losses_field FIELDS[] = {
        {"labels", NULL}, {"annotations", NULL}, {"creationTimestamp", NULL}, {0}};
    static const char *const KEPT[] = {"labels", "annotations"};
    const cJSON *m;

    losses_members(c->losses, from, FIELDS);
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++)
        cJSON_ArrayForEach(m, json_child(from->node, KEPT[i]))
        {
            cJSON *to = convert_object(c->metadata, KEPT[i]);
            if (!cJSON_GetObjectItemCaseSensitive(to, m->string))
                cJSON_AddItemToObject(to, m->string, cJSON_Duplicate(m, true));
        }
}

static bool trains(const cJSON *step)
{
    const char *label =
        json_str(json_find(step, (const char *[]){"template", "metadata", "labels", NULL}), STEP_LABEL);

    return label && strcmp(label, "trainer") == 0;
}

/* The step that trains; the others are lost. */
static int find_step(struct conversion *c, struct runtime_parts *rt, struct err *err)
{
    const cJSON *node;
    int i = 0;

    rt->steps = json_member(&rt->jobset, "replicatedJobs");
    if (json_expect_array(&rt->steps, 100, err) < 0)
        return -1;
    cJSON_ArrayForEach(node, rt->steps.node)
    {
        const struct json_at step = json_item(&rt->steps, node, i++);
        const char *name = json_str(node, "name");
        if (!rt->step_at.node && trains(node))
            rt->step_at = step;
        else
            losses_add(c->losses, &step,
                       "the step \"%.60s\" has no counterpart: run it as a Job of its own before the "
                       "training, or in an "
                       "init container",
                       name ? name : "");
    }
    if (!rt->step_at.node)
        return json_err(&rt->steps, err, "expected an item with the label %s: trainer in its template",
                        STEP_LABEL);
    rt->step = json_str(rt->step_at.node, "name");
    return rt->step ? 0 : json_err(&rt->step_at, err, "expected a name");
}

/* Of the Job's own labels and annotations only Trainer's is known to have no effect here. */
static void lose_job_metadata(struct conversion *c, const struct runtime_parts *rt)
{
    static const struct losses_field FIELDS[] = {
        {"labels", NULL}, {"annotations", RUNTIME_NO_JOB}, {"creationTimestamp", NULL}, {0}};
    const struct json_at metadata = json_member(&rt->job_template, "metadata");
    const struct json_at labels = json_member(&metadata, "labels");
    const cJSON *label;

    losses_members(c->losses, &metadata, FIELDS);
    cJSON_ArrayForEach(label, labels.node)
    {
        const struct json_at at = json_member(&labels, label->string);
        if (strcmp(label->string, STEP_LABEL) != 0)
            losses_add(c->losses, &at, "%s", RUNTIME_NO_JOB);
    }
}

static void read_job(struct conversion *c, struct runtime_parts *rt)
{
    static const struct losses_field STEP[] = {
        {"name", NULL}, {"template", NULL}, {"replicas", NULL}, {"dependsOn", NULL}, {0}};
    static const struct losses_field JOB[] = {
        {"template", NULL},
        {"parallelism", NULL},
        {"completions", NULL},
        {"completionMode", NULL},
        {"backoffLimit", LOSSES_SAME},
        {"activeDeadlineSeconds", LOSSES_SAME},
        {"podFailurePolicy", "write it into runPolicy.podFailurePolicy, with the names of these containers"},
        {0}};
    const struct json_at replicas = json_member(&rt->step_at, "replicas");

    rt->job_template = json_member(&rt->step_at, "template");
    rt->job = json_member(&rt->job_template, "spec");
    rt->pod_template = json_member(&rt->job, "template");
    losses_members(c->losses, &rt->step_at, STEP);
    losses_members(c->losses, &rt->job_template, LOSSES_METADATA_AND_SPEC);
    lose_job_metadata(c, rt);
    convert_members(c, &rt->job, JOB, c->spec, "runPolicy");
    if (replicas.node && json_exact_i64(replicas.node, 0) != 1)
        losses_add(c->losses, &replicas, "expected 1: a job has one group of these pods");
}

static void read_jobset(struct conversion *c, const struct runtime_parts *rt)
{
    static const struct losses_field FIELDS[] = {
        {"replicatedJobs", NULL},
        {"ttlSecondsAfterFinished", LOSSES_SAME},
        {"failurePolicy", NULL},
        {"volumeClaimPolicies", NULL},
        {"network", "the operator makes a headless Service of its own"},
        {"successPolicy", "a job succeeds when its pod 0 does"},
        {"startupPolicy", "all pods start at once"},
        {0}};
    static const struct losses_field FAILURE[] = {{"maxRestarts", NULL}, {0}};
    const struct json_at failure = json_member(&rt->jobset, "failurePolicy");
    const struct json_at restarts = json_member(&failure, "maxRestarts");

    convert_members(c, &rt->jobset, FIELDS, c->spec, "runPolicy");
    losses_members(c->losses, &failure, FAILURE);
    if (restarts.node) /* of the whole gang, as here; those of single pods are the Job's */
        convert_copy(convert_object(c->spec, "runPolicy"), "backoffLimit", &restarts);
}

/* The operator's --gang-scheduler decides whether the pods are a gang. */
static void read_gang(struct conversion *c, const struct runtime_parts *rt)
{
    static const struct losses_field FIELDS[] = {{"coscheduling", NULL}, {"volcano", NULL}, {0}};
    static const struct losses_field COSCHEDULING[] = {{"scheduleTimeoutSeconds", NULL}, {0}};
    static const struct losses_field VOLCANO[] = {{"networkTopology", "the operator's PodGroups have none"},
                                                  {0}};
    const struct json_at policy = json_member(&rt->spec, "podGroupPolicy");
    const struct json_at coscheduling = json_member(&policy, "coscheduling");
    const struct json_at volcano = json_member(&policy, "volcano");
    const struct json_at timeout = json_member(&coscheduling, "scheduleTimeoutSeconds");

    losses_members(c->losses, &policy, FIELDS);
    losses_members(c->losses, &coscheduling, COSCHEDULING);
    losses_members(c->losses, &volcano, VOLCANO);
    if (cJSON_IsNumber(timeout.node) && timeout.node->valuedouble < 1)
        losses_add(c->losses, &timeout, "expected 1 or more: the job's PodGroups get no time limit");
    else if (losses_is_set(timeout.node))
        convert_copy(convert_object(convert_object(c->spec, "runPolicy"), "schedulingPolicy"),
                     "scheduleTimeoutSeconds", &timeout);
    if (policy.node)
        losses_note(c->losses, &policy,
                    "the pods start together where the operator runs with --gang-scheduler, else one by one");
}

static int read_policy(struct conversion *c, struct runtime_parts *rt, struct err *err)
{
    static const struct losses_field FIELDS[] = {{"numNodes", NULL}, {"torch", NULL}, {0}};
    static const struct losses_field TORCH[] = {
        {"numProcPerNode", NULL},
        {"envInjection", "the operator sets RANK and the like in the training container alone"},
        {"elasticPolicy", "Trainer itself does not follow it: use spec.elastic"},
        {0}};

    rt->policy = json_member(&rt->spec, "mlPolicy");
    rt->torch = json_member(&rt->policy, "torch");
    rt->nodes = 1;
    if (!rt->torch.node)
        return json_err(&rt->policy, err, "expected torch: other frameworks' runtimes cannot be converted");
    losses_members(c->losses, &rt->policy, FIELDS);
    losses_members(c->losses, &rt->torch, TORCH);
    return json_get_i64(&rt->policy, "numNodes", 1, TRAINJOB_PODS_MAX, &rt->nodes, err);
}

static int read_all(struct conversion *c, struct runtime_parts *rt, struct err *err)
{
    static const struct losses_field SPEC[] = {
        {"mlPolicy", NULL}, {"template", NULL}, {"podGroupPolicy", NULL}, {0}};

    rt->spec = convert_top(&rt->root, "spec");
    rt->template = json_member(&rt->spec, "template");
    rt->jobset = json_member(&rt->template, "spec");
    const struct json_at metadata = json_member(&rt->template, "metadata");
    losses_members(c->losses, &rt->spec, SPEC);
    if (read_policy(c, rt, err) < 0 || find_step(c, rt, err) < 0)
        return -1;
    add_metadata(c, &metadata);
    read_gang(c, rt);
    read_job(c, rt);
    read_jobset(c, rt);
    return 0;
}

int runtime_read(struct conversion *c, const cJSON *runtime, struct runtime_parts *ret, struct err *err)
{
    const char *name = json_meta(runtime, "name");

    *ret = (struct runtime_parts){.root = json_root(runtime, NULL), .subject = c->losses->subject};
    c->losses->subject = arena_printf(c->arena, "%.40s %.253s", json_str(runtime, "kind"), name ? name : "");
    if (read_all(c, ret, err) == 0)
        return 0;
    err_wrap(err, "%s", c->losses->subject);
    runtime_end(c, ret);
    return -1;
}

void runtime_end(struct conversion *c, const struct runtime_parts *rt)
{
    c->losses->subject = rt->subject;
}

static void add_claim(cJSON *pod_spec, const char *name, const char *claim)
{
    cJSON *volumes = cJSON_GetObjectItemCaseSensitive(pod_spec, "volumes");
    cJSON *v = cJSON_CreateObject();

    volumes = cJSON_IsArray(volumes) ? volumes : cJSON_AddArrayToObject(pod_spec, "volumes");
    cJSON_AddStringToObject(v, "name", name);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(v, "persistentVolumeClaim"), "claimName", claim);
    cJSON_AddItemToArray(volumes, v);
}

void runtime_claims(struct conversion *c, const struct runtime_parts *rt, cJSON *pod_spec)
{
    const struct json_at policies = json_member(&rt->jobset, "volumeClaimPolicies");
    const char *job = json_str(c->metadata, "name");
    const cJSON *policy, *template;

    cJSON_ArrayForEach(policy, policies.node) cJSON_ArrayForEach(template, json_child(policy, "templates"))
    {
        const char *name = json_meta(template, "name");
        if (!name)
            continue;
        if (!job) {
            losses_add(c->losses, &policies,
                       "the PersistentVolumeClaim is %.100s- and the job's name, which generateName makes: "
                       "the volume "
                       "%.100s is left out",
                       name, name);
            continue;
        }
        const char *claim = arena_printf(c->arena, "%.100s-%.100s", name, job);
        add_claim(pod_spec, name, claim);
        losses_add(c->losses, &policies,
                   "nothing creates the PersistentVolumeClaim %s, which the pods mount: create it", claim);
    }
}
