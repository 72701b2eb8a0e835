/* runtime.c - find the runtime of a TrainJob, and read one whose mlPolicy is torch. */
#include "cli/convert/parts.h"

#include "cli/jobfile.h"

#include <string.h>

/* ---- find it */

/* What Trainer 2.3 installs under this name. */
#define KNOWN_NAME "torch-distributed"
#define KNOWN_IMAGE "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"

static const char KNOWN[] =
    "{\"kind\":\"ClusterTrainingRuntime\",\"metadata\":{\"name\":\"" KNOWN_NAME
    "\"},\"spec\":{\"mlPolicy\":{\"numNodes\":1,"
    "\"torch\":{}},\"template\":{\"spec\":{\"replicatedJobs\":[{\"name\":\"node\",\"template\":{\"metadata\":"
    "{\"labels\":{"
    "\"trainer.kubeflow.org/"
    "trainjob-ancestor-step\":\"trainer\"}},\"spec\":{\"template\":{\"spec\":{\"containers\":[{"
    "\"name\":\"node\",\"image\":\"" KNOWN_IMAGE "\"}]}}}}}]}}}}";

static const cJSON *among(const cJSON *entries, const char *kind, const char *name)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, entries)
    {
        const cJSON *o = jobfile_object(entry);
        const char *own = json_meta(o, "name");
        if (convert_kind_of(o) == CONVERT_RUNTIME && own && strcmp(json_str(o, "kind"), kind) == 0 &&
            strcmp(own, name) == 0)
            return o;
    }
    return NULL;
}

static const cJSON *find_runtime(struct conversion *c, const struct json_at *ref, struct err *err)
{
    const char *name = NULL;
    const char *kind = "ClusterTrainingRuntime";

    losses_members(c->losses, ref, "name kind apiGroup", NULL);
    if (json_expect_object(ref, err) < 0 || json_get_str(ref, "name", &name, err) < 0 ||
        json_get_str(ref, "kind", &kind, err) < 0)
        return NULL;
    if (!name) {
        json_err(ref, err, "expected the name of a runtime");
        return NULL;
    }
    const cJSON *found = among(c->entries, kind, name);
    if (found)
        return found;
    if (strcmp(kind, "ClusterTrainingRuntime") != 0 || strcmp(name, KNOWN_NAME) != 0) {
        json_err(ref, err,
                 "the %.40s \"%.60s\" is not in the files: give its manifest too (kubectl get "
                 "%.40s %.60s -o yaml)",
                 kind, name, kind, name);
        return NULL;
    }
    losses_note(c->losses, ref,
                KNOWN_NAME
                " is not in the files: taken as Trainer 2.3 installs it, with the image " KNOWN_IMAGE
                " for a trainer without one");
    c->known_runtime = json_parse(KNOWN, strlen(KNOWN), err);
    return c->known_runtime;
}

/* ---- read it */

static const char STEP_LABEL[] = "trainer.kubeflow.org/trainjob-ancestor-step";

/* Labels and annotations of the JobSet are the job's here; those of the TrainJob have precedence. */
static void add_metadata(struct conversion *c, const struct json_at *from)
{
    static const char *const KEPT[] = {"labels", "annotations"};
    const cJSON *m;

    losses_members(c->losses, from, "labels annotations creationTimestamp", NULL);
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++)
        cJSON_ArrayForEach(m, json_child(from->node, KEPT[i]))
        {
            cJSON *to = convert_object(c->metadata, KEPT[i]);
            if (!json_child(to, m->string))
                json_set(to, m->string, cJSON_Duplicate(m, true));
        }
}

static bool trains(const cJSON *step)
{
    const char *label =
        json_str(json_find(step, (const char *[]){"template", "metadata", "labels", NULL}), STEP_LABEL);

    return label && strcmp(label, "trainer") == 0;
}

/* The step that trains; the others are lost. */
static int find_step(struct conversion *c, struct runtime *rt, struct err *err)
{
    const struct json_at *steps = convert_at(c, rt->jobset, "replicatedJobs");
    const cJSON *node;
    int i = 0;

    if (json_expect_array(steps, 100, err) < 0)
        return -1;
    cJSON_ArrayForEach(node, steps->node)
    {
        const struct json_at step = json_item(steps, node, i++);
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
        return json_err(steps, err, "expected an item with the label %s: trainer in its template",
                        STEP_LABEL);
    rt->step = json_str(rt->step_at.node, "name");
    return rt->step ? 0 : json_err(&rt->step_at, err, "expected a name");
}

/* Of the Job's own labels and annotations only Trainer's is known to have no effect here. */
static void lose_job_metadata(struct conversion *c, const struct runtime *rt)
{
    static const struct losses_field LOST[] = {{"annotations", RUNTIME_NO_JOB}, {0}};
    const struct json_at *labels = convert_at(c, &rt->step_at, "template.metadata.labels");
    const cJSON *label;

    losses_members(c->losses, labels->parent, "labels creationTimestamp", LOST);
    cJSON_ArrayForEach(label, labels->node)
    {
        const struct json_at at = json_member(labels, label->string);
        if (strcmp(label->string, STEP_LABEL) != 0)
            losses_add(c->losses, &at, "%s", RUNTIME_NO_JOB);
    }
}

static void read_job(struct conversion *c, struct runtime *rt)
{
    static const struct losses_field LOST[] = {
        {"podFailurePolicy", "write it into runPolicy.podFailurePolicy, with the names of these containers"},
        {0}};
    const struct json_at replicas = json_member(&rt->step_at, "replicas");
    const struct json_at *job = convert_at(c, &rt->step_at, "template.spec");

    rt->pod_template = convert_at(c, job, "template");
    losses_members(c->losses, &rt->step_at, "name template replicas dependsOn", NULL);
    losses_members(c->losses, job->parent, "metadata spec", NULL);
    lose_job_metadata(c, rt);
    convert_members(c, job,
                    "template parallelism completions completionMode =backoffLimit =activeDeadlineSeconds",
                    LOST, c->spec, "runPolicy");
    if (replicas.node && json_exact_i64(replicas.node, 0) != 1)
        losses_add(c->losses, &replicas, "expected 1: a job has one group of these pods");
}

static void read_jobset(struct conversion *c, const struct runtime *rt)
{
    static const struct losses_field LOST[] = {
        {"network", "the operator makes a headless Service of its own"},
        {"successPolicy", "a job succeeds when its pod 0 does"},
        {"startupPolicy", "all pods start at once"},
        {0}};
    const struct json_at failure = json_member(rt->jobset, "failurePolicy");
    const cJSON *restarts = json_child(failure.node, "maxRestarts");

    convert_members(c, rt->jobset,
                    "replicatedJobs =ttlSecondsAfterFinished failurePolicy volumeClaimPolicies", LOST,
                    c->spec, "runPolicy");
    losses_members(c->losses, &failure, "maxRestarts", NULL);
    if (restarts) /* of the whole gang, as here; those of single pods are the Job's */
        convert_copy(convert_object(c->spec, "runPolicy"), "backoffLimit", restarts);
}

/* The operator's --gang-scheduler decides whether the pods are a gang. */
static void read_gang(struct conversion *c, const struct runtime *rt)
{
    static const struct losses_field LOST[] = {{"networkTopology", "the operator's PodGroups have none"},
                                               {0}};
    const struct json_at policy = json_member(&rt->spec, "podGroupPolicy");
    const struct json_at *timeout = convert_at(c, &policy, "coscheduling.scheduleTimeoutSeconds");

    losses_members(c->losses, &policy, "coscheduling volcano", NULL);
    losses_members(c->losses, timeout->parent, "scheduleTimeoutSeconds", NULL);
    losses_members(c->losses, convert_at(c, &policy, "volcano"), "", LOST);
    if (cJSON_IsNumber(timeout->node) && timeout->node->valuedouble < 1)
        losses_add(c->losses, timeout, "expected 1 or more: the job's PodGroups get no time limit");
    else if (losses_is_set(timeout->node))
        convert_copy(convert_object(convert_object(c->spec, "runPolicy"), "schedulingPolicy"),
                     "scheduleTimeoutSeconds", timeout->node);
    if (policy.node)
        losses_note(c->losses, &policy,
                    "the pods start together where the operator runs with --gang-scheduler, else one by one");
}

static int read_policy(struct conversion *c, struct runtime *rt, struct err *err)
{
    static const struct losses_field LOST[] = {
        {"envInjection", "the operator sets RANK and the like in the training container alone"},
        {"elasticPolicy", "Trainer itself does not follow it: use spec.elastic"},
        {0}};
    const struct json_at *policy = convert_at(c, &rt->spec, "mlPolicy");

    rt->torch = convert_at(c, policy, "torch");
    rt->nodes = 1;
    if (!rt->torch->node)
        return json_err(policy, err, "expected torch: other frameworks' runtimes cannot be converted");
    losses_members(c->losses, policy, "numNodes torch", NULL);
    losses_members(c->losses, rt->torch, "numProcPerNode", LOST);
    return json_get_i64(policy, "numNodes", 1, TRAINJOB_PODS_MAX, &rt->nodes, err);
}

static int read_all(struct conversion *c, struct runtime *rt, struct err *err)
{
    rt->jobset = convert_at(c, &rt->spec, "template.spec");
    losses_members(c->losses, &rt->spec, "mlPolicy template podGroupPolicy", NULL);
    if (read_policy(c, rt, err) < 0 || find_step(c, rt, err) < 0)
        return -1;
    add_metadata(c, convert_at(c, &rt->spec, "template.metadata"));
    read_gang(c, rt);
    read_job(c, rt);
    read_jobset(c, rt);
    return 0;
}

int runtime_read(struct conversion *c, const struct json_at *ref, struct runtime *ret, struct err *err)
{
    const cJSON *runtime = find_runtime(c, ref, err);
    const char *name = json_meta(runtime, "name");

    if (!runtime)
        return -1;
    *ret = (struct runtime){.spec = json_root(json_child(runtime, "spec"), "spec"),
                            .subject = c->losses->subject};
    c->losses->subject = arena_printf(c->arena, "%.40s %.253s", json_str(runtime, "kind"), name ? name : "");
    if (read_all(c, ret, err) == 0)
        return 0;
    err_wrap(err, "%s", c->losses->subject);
    runtime_end(c, ret);
    return -1;
}

void runtime_end(struct conversion *c, const struct runtime *rt)
{
    c->losses->subject = rt->subject;
}

static void add_claim(cJSON *pod_spec, const char *name, const char *claim)
{
    cJSON *volumes = json_child(pod_spec, "volumes");
    cJSON *v = cJSON_CreateObject();

    volumes = cJSON_IsArray(volumes) ? volumes : cJSON_AddArrayToObject(pod_spec, "volumes");
    cJSON_AddStringToObject(v, "name", name);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(v, "persistentVolumeClaim"), "claimName", claim);
    cJSON_AddItemToArray(volumes, v);
}

void runtime_claims(struct conversion *c, const struct runtime *rt, cJSON *pod_spec)
{
    const struct json_at policies = json_member(rt->jobset, "volumeClaimPolicies");
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
