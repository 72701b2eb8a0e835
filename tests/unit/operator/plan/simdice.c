/* simdice.c - chance: which job it is, what becomes of its pods, what people do to it. */
#include "simdice.h"
#include "jsontext.h"
#include "test.h"
#include "yamldoc.h"

#include <string.h>

#define START_MS 1767225600000 /* 2026-01-01 */

/* Marsaglia's xorshift64. */
static uint64_t roll(struct sim *s)
{
    s->dice ^= s->dice << 13;
    s->dice ^= s->dice >> 7;
    s->dice ^= s->dice << 17;
    return s->dice;
}

int sim_pick(struct sim *s, int n)
{
    return (int)(roll(s) >> 33) % n;
}

bool sim_one_in(struct sim *s, int n)
{
    return sim_pick(s, n) == 0;
}

#define PICK(s, words) (words)[sim_pick((s), (int)ARRAY_LEN(words))]

/* ---- the job */

static cJSON *random_type(struct sim *s, const char *name, int replicas)
{
    static const char *const POLICIES[] = {"Always", "OnFailure", "Never", "ExitCode", "ExitCode"};
    cJSON *r = jsontext_parse("{'template':{'spec':{'initContainers':[{'name':'prepare'}],'containers':[{'"
                              "name':'pytorch','image':'a'}]}}}");

    static const char *const PATH[] = {"template", "spec", "containers", NULL};

    cJSON_AddStringToObject(r, "type", name);
    cJSON_AddNumberToObject(r, "replicas", replicas);
    cJSON_AddStringToObject(r, "restartPolicy", PICK(s, POLICIES));
    if (sim_one_in(s, 3))
        cJSON_AddItemToArray((cJSON *)json_find(r, PATH), jsontext_parse("{'name':'shipper','image':'a'}"));
    return r;
}

/* Pieces that any job may have, each with even odds. */
static void random_rest(struct sim *s, cJSON *spec, bool elastic)
{
    static const char *const PIECES[] = {
        "{'runPolicy':{'restartScope':'Replica'}}",
        "{'runPolicy':{'activeDeadlineSeconds':600}}",
        "{'runPolicy':{'startDeadlineSeconds':60}}",
        "{'runPolicy':{'ttlSecondsAfterFinished':100}}",
        "{'runPolicy':{'forceDeleteAfterSeconds':20}}",
        "{'runPolicy':{'sidecarGraceSeconds':0}}",
        "{'runPolicy':{'retryableExitCodes':[1]}}",
        "{'runMode':{'pause':{'resumeSpecs':[{'type':'node','args':['x']}]}}}",
        "{'tensorboardSpec':{'logDir':{'pvc':[{'name':'c'}]}}}",
        "{'torchrunConfig':{'enabled':true}}",
        "{'torchrunConfig':{'enabled':true,'launcher':'Torchkeeper'}}",
        "{'suspend':true}",
    };
    static const char *const CLEANUPS[] = {"None", "Unfinished", "All"};

    for (size_t i = 0; i < ARRAY_LEN(PIECES); i++) {
        cleanup_json cJSON *piece = jsontext_parse(PIECES[i]);
        if (sim_one_in(s, 3))
            yamldoc_merge(spec, piece);
    }
    cleanup_json cJSON *policy = cJSON_CreateObject();
    cJSON *run = cJSON_AddObjectToObject(policy, "runPolicy");
    cJSON_AddStringToObject(run, "cleanUpPolicy", PICK(s, CLEANUPS));
    cJSON_AddNumberToObject(run, "backoffLimit", sim_pick(s, 6));
    yamldoc_merge(spec, policy);
    if (!elastic)
        return;
    cleanup_json cJSON *piece =
        jsontext_parse("{'torchrunConfig':{'enabled':true,'maxRestarts':1},'elastic':{'enabled':true,'"
                       "minReplicas':1,'maxReplicas':4,'expectedReplicas':2}}");
    yamldoc_merge(spec, piece);
}

void sim_init(struct sim *s, uint64_t seed)
{
    *s = (struct sim){.seed = seed, .dice = seed * 0x9e3779b97f4a7c15 + 1, .now_ms = START_MS};
    s->n_nodes = 1 + (int)(seed % 3);
    for (int i = 0; i < 8; i++)
        (void)roll(s);
    s->pods = cJSON_CreateArray();
    s->job = jsontext_parse("{'metadata':{'name':'j','namespace':'n','uid':'job','resourceVersion':'1','"
                            "generation':1,'creationTimestamp':'2026-01-01T00:00:00Z'},'spec':{}}");
    cJSON *spec = sim_get(s->job, "spec");
    cJSON *types = cJSON_AddArrayToObject(spec, "replicaSpecs");
    bool elastic = sim_one_in(s, 4);
    cJSON_AddItemToArray(types, random_type(s, "node", elastic ? 2 : 1 + sim_pick(s, 3)));
    if (!elastic && sim_one_in(s, 3))
        cJSON_AddItemToArray(types, random_type(s, "worker", 1 + sim_pick(s, 2)));
    random_rest(s, spec, elastic);
}

/* ---- pods */

static void set_phase(cJSON *pod, const char *phase)
{
    sim_put(sim_get(pod, "status"), "phase", cJSON_CreateString(phase));
}

/* Beside the training container, which is the first, the sidecar runs, where the pod has one. */
static void set_state(cJSON *pod, const char *list, const char *container, cJSON *state)
{
    cJSON *items = cJSON_CreateArray();
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(item, "name", container);
    cJSON_AddItemToObject(item, "state", state);
    cJSON_AddItemToArray(items, item);
    if (strcmp(container, "pytorch") == 0 &&
        cJSON_GetArraySize(sim_get(sim_get(pod, "spec"), "containers")) > 1)
        cJSON_AddItemToArray(items, jsontext_parse("{'name':'shipper','state':{'running':{}}}"));
    sim_put(sim_get(pod, "status"), list, items);
}

/* The value of this key in the state of the i-th container of this list; NULL: none. */
static cJSON *state_of(const cJSON *pod, const char *list, int i, const char *key)
{
    return sim_get(sim_get(cJSON_GetArrayItem(sim_get(sim_get(pod, "status"), list), i), "state"), key);
}

static cJSON *running_sidecar(const cJSON *pod)
{
    return state_of(pod, "containerStatuses", 1, "running")
               ? cJSON_GetArrayItem(sim_get(sim_get(pod, "status"), "containerStatuses"), 1)
               : NULL;
}

/* It ends by itself, or the kubelet ends it beyond the pod's deadline, which makes any pod a failed one. */
static void end_sidecar(struct sim *s, cJSON *pod, bool trouble)
{
    cJSON *c = running_sidecar(pod);
    bool late = sim_get(sim_get(pod, "spec"), "activeDeadlineSeconds") != NULL;

    if (!c || !sim_one_in(s, trouble ? 5 : late ? 1 : 1 << 30))
        return;
    sim_put(c, "state",
            jsontext_parse(late ? "{'terminated':{'exitCode':137}}" : "{'terminated':{'exitCode':0}}"));
    if (!late)
        return;
    set_phase(pod, "Failed");
    sim_put(sim_get(pod, "status"), "reason", cJSON_CreateString("DeadlineExceeded"));
}

static bool has_ended(const cJSON *pod)
{
    const char *phase = json_str(sim_get(pod, "status"), "phase");

    return phase && (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0);
}

static void end_container(struct sim *s, cJSON *pod, const char *list, const char *container, int code)
{
    static const char *const REASONS[] = {"Error", "Error", "Error", "OOMKilled"};
    static const char *const MESSAGES[] = {
        "", "Root Cause (first observed failure):\n[0]:\n  rank      : 1\n  exitcode  : -9 (pid: 7)\n",
        "SignalException: Process 7 got signal: 15", "Traceback"};
    cJSON *state = cJSON_CreateObject();
    cJSON *end = cJSON_AddObjectToObject(state, "terminated");

    cJSON_AddNumberToObject(end, "exitCode", code);
    cJSON_AddStringToObject(end, "reason", code ? PICK(s, REASONS) : "Completed");
    cJSON_AddStringToObject(end, "message", PICK(s, MESSAGES));
    sim_put(end, "finishedAt", sim_instant(s, 0));
    set_state(pod, list, container, state);
    if (sim_one_in(s, 4) || running_sidecar(pod))
        return; /* its phase comes later */
    set_phase(pod, code ? "Failed" : "Succeeded");
}

static void disrupt(cJSON *pod)
{
    sim_put(sim_get(pod, "status"), "conditions",
            jsontext_parse("[{'type':'DisruptionTarget','status':'True','reason':'EvictionByEvictionAPI'}]"));
}

/* What a pod with a node may run into at any time; in some lives a node refuses many. True: it did, and may be
 * gone. */
static bool run_into_trouble(struct sim *s, cJSON *pod)
{
    static const char *const REASONS[] = {"Evicted", "OutOfcpu", "UnexpectedAdmissionError", "NodeShutdown",
                                          "SomethingNew"};

    bool refuses = s->seed % 4 == 0 && strcmp(json_str(sim_get(pod, "spec"), "nodeName"), "n0") == 0;

    switch (refuses && sim_one_in(s, 3) ? 3 : sim_pick(s, 60)) {
    case 0:
        sim_delete_pod(s, pod, false);
        return true;
    case 1:
        sim_delete_pod(s, pod, true);
        return true;
    case 2:
        disrupt(pod);
        sim_delete_pod(s, pod, false);
        return true;
    case 3:
        set_phase(pod, "Failed");
        sim_put(sim_get(pod, "status"), "reason", cJSON_CreateString(PICK(s, REASONS)));
        return true;
    case 4:
        set_phase(pod, "Unknown");
        return true;
    default:
        return false;
    }
}

static void start_pod(struct sim *s, cJSON *pod, bool trouble)
{
    if (trouble && sim_one_in(s, 6)) {
        set_phase(pod, "Pending");
        set_state(pod, "containerStatuses", "pytorch",
                  jsontext_parse("{'waiting':{'reason':'ImagePullBackOff'}}"));
    } else if (trouble && sim_one_in(s, 20)) {
        end_container(s, pod, "initContainerStatuses", "prepare", 1);
    } else {
        set_phase(pod, "Running");
        set_state(pod, "containerStatuses", "pytorch", jsontext_parse("{'running':{}}"));
    }
}

static void finish_phase(cJSON *pod)
{
    static const char *const LISTS[] = {"containerStatuses", "initContainerStatuses"};

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        const cJSON *end = state_of(pod, LISTS[i], 0, "terminated");
        if (end)
            set_phase(pod, json_i64(end, "exitCode", 0) ? "Failed" : "Succeeded");
    }
}

/* One of the nodes that the pod may use, each of the field's requirements taking one away; NULL: none. */
static const char *node_for(struct sim *s, const cJSON *spec)
{
    static const char *const NODES[] = {"n0", "n1", "n2"};
    static const char *const PATH[] = {"affinity", "nodeAffinity",
                                       "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms",
                                       NULL};
    const cJSON *fields = sim_get(cJSON_GetArrayItem(json_find(spec, PATH), 0), "matchFields");
    const char *open[ARRAY_LEN(NODES)];
    int n = 0;

    for (int i = 0; i < s->n_nodes; i++) {
        const cJSON *f;
        bool out = false;
        cJSON_ArrayForEach(f, fields) out |=
            strcmp(cJSON_GetArrayItem(sim_get(f, "values"), 0)->valuestring, NODES[i]) == 0;
        if (!out)
            open[n++] = NODES[i];
    }
    return n ? open[sim_pick(s, n)] : NULL;
}

static void schedule(struct sim *s, cJSON *pod)
{
    const char *node = node_for(s, sim_get(pod, "spec"));

    sim_put(
        sim_get(pod, "status"), "conditions",
        jsontext_parse(
            node ? "[{'type':'PodScheduled','status':'True'}]"
                 : "[{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'none'}]"));
    if (node)
        cJSON_AddStringToObject(sim_get(pod, "spec"), "nodeName", node);
}

static void step_pod(struct sim *s, cJSON *pod, bool trouble)
{
    static const int CODES[] = {0, 0, 1, 1, 2, 134, 137, 137, 138, 139, 140, 143};
    cJSON *spec = sim_get(pod, "spec");

    if (sim_get(sim_get(pod, "metadata"), "deletionTimestamp")) {
        if (!trouble || sim_one_in(s, 2))
            sim_remove_pod(s, pod);
        return;
    }
    if (!json_str(spec, "nodeName")) {
        if (!trouble || sim_one_in(s, 2))
            schedule(s, pod);
        return;
    }
    if (has_ended(pod) || (trouble && run_into_trouble(s, pod)))
        return;
    if (state_of(pod, "containerStatuses", 0, "terminated")) {
        end_sidecar(s, pod, trouble);
        if (running_sidecar(pod) || has_ended(pod))
            return;
    }
    finish_phase(pod);
    if (has_ended(pod))
        return;
    if (!state_of(pod, "containerStatuses", 0, "running"))
        start_pod(s, pod, trouble);
    else if (trouble && sim_one_in(s, 10))
        end_container(s, pod, "containerStatuses", "pytorch", PICK(s, CODES));
    else
        set_phase(pod, "Running");
}

void sim_kubelets(struct sim *s, bool trouble)
{
    cJSON *next;

    for (cJSON *pod = s->pods->child; pod; pod = next) {
        next = pod->next;
        step_pod(s, pod, trouble);
    }
    if (s->deployment) {
        cleanup_json cJSON *status = jsontext_parse("{'status':{}}");
        cJSON_AddNumberToObject(sim_get(status, "status"), "availableReplicas",
                                (double)json_i64(sim_get(s->deployment, "spec"), "replicas", 0));
        yamldoc_merge(s->deployment, status);
    }
}

/* ---- people */

static bool may_change_gang(const struct sim *s)
{
    return cJSON_IsTrue(sim_get(sim_get(s->job, "spec"), "suspend")) || !sim_get(sim_status(s), "startTime");
}

static void merge_spec(struct sim *s, const char *text)
{
    cleanup_json cJSON *patch = jsontext_parse(text);

    yamldoc_merge(sim_get(s->job, "spec"), patch);
    sim_touch_job(s, true);
}

static void change_template(struct sim *s)
{
    cJSON *r = cJSON_GetArrayItem(sim_get(sim_get(s->job, "spec"), "replicaSpecs"), 0);
    cJSON *c = cJSON_GetArrayItem(sim_get(sim_get(sim_get(r, "template"), "spec"), "containers"), 0);
    static const char *const IMAGES[] = {"a", "b"};

    sim_put(c, "image", cJSON_CreateString(PICK(s, IMAGES)));
    if (may_change_gang(s) && !sim_get(sim_get(s->job, "spec"), "elastic"))
        sim_put(r, "replicas", cJSON_CreateNumber(1 + sim_pick(s, 3)));
    sim_touch_job(s, true);
}

static void scale(struct sim *s)
{
    cJSON *elastic = sim_get(sim_get(s->job, "spec"), "elastic");

    if (!elastic)
        return;
    sim_put(elastic, "expectedReplicas", cJSON_CreateNumber(1 + sim_pick(s, 4)));
    sim_touch_job(s, true);
}

static void lose_status(struct sim *s)
{
    sim_put(s->job, "status", NULL);
    sim_touch_job(s, false);
    s->status_was_lost = true;
    memset(s->lives, 0, sizeof(s->lives));
}

/* Someone writes into the status what the operator never would. */
static void spoil_status(struct sim *s)
{
    static const char *const SPOILS[] = {
        "{'attempt':2147483647}",
        "{'attempt':1073741823,'backoffCount':1073741823}",
        "{'attempt':-1,'resumeCount':1073741823}",
        "{'backoffCount':2147483647,'disruptionCount':-5}",
        ("{'tasks':[{'type':'node','restartCount':1073741823,"
         "'replicas':[{'restarts':1073741823,'uid':'x'}]}]}"),
        "{'lastFailure':{'time':'9999-01-01T00:00:00Z','attempt':0,'pod':'j-node-0','reason':'Killed'}}",
        "{'completionTime':null,'conditions':null}",
        "{'phase':null}",
        "{'tasks':null}"};
    cleanup_json cJSON *patch = jsontext_parse(PICK(s, SPOILS));

    if (!sim_status(s))
        return;
    yamldoc_merge(sim_status(s), patch);
    sim_touch_job(s, false);
    s->status_was_lost = true;
    memset(s->lives, 0, sizeof(s->lives));
}

static void spoil_labels(struct sim *s)
{
    static const char *const KEYS[] = {LABEL_ATTEMPT, LABEL_RESTART, LABEL_INDEX};
    static const char *const VALUES[] = {"7", "1073741823", "2147483647", "x"};
    cJSON *pod = cJSON_GetArrayItem(s->pods, sim_pick(s, cJSON_GetArraySize(s->pods) + 1));

    if (!pod)
        return;
    sim_put(sim_get(sim_get(pod, "metadata"), "labels"), PICK(s, KEYS), cJSON_CreateString(PICK(s, VALUES)));
    s->status_was_lost = true;
    memset(s->lives, 0, sizeof(s->lives));
}

void sim_people(struct sim *s)
{
    static const char *const EDITS[] = {"{'suspend':true}",
                                        "{'suspend':false}",
                                        "{'suspend':null}",
                                        "{'runMode':{'debug':{'enabled':true}}}",
                                        "{'runMode':{'debug':{'enabled':false}}}",
                                        "{'runPolicy':{'backoffLimit':2}}",
                                        "{'runPolicy':{'cleanUpPolicy':'All'}}",
                                        "{'tensorboardSpec':null}",
                                        "{'tensorboardSpec':{'logDir':{'pvc':[{'name':'d'}]}}}",
                                        "{'nonsense':1}",
                                        "{'nonsense':null}"};

    switch (sim_pick(s, 8)) {
    case 0:
        change_template(s);
        return;
    case 1:
        scale(s);
        return;
    case 2:
        cJSON_Delete(s->service);
        s->service = NULL;
        return;
    case 3:
        if (sim_one_in(s, 4))
            lose_status(s);
        else if (s->seed % 4 == 0) /* or else the invariants of sound statuses would never be seen for long */
            sim_one_in(s, 2) ? spoil_status(s) : spoil_labels(s);
        return;
    default:
        merge_spec(s, PICK(s, EDITS));
    }
}

void sim_people_rest(struct sim *s)
{
    merge_spec(s, "{'suspend':null,'nonsense':null,'runMode':null}");
}

void sim_end_master(struct sim *s)
{
    cJSON *pod;

    cJSON_ArrayForEach(pod, s->pods)
    {
        if (strcmp(json_str(sim_get(pod, "metadata"), "name"), "j-node-0") == 0)
            end_container(s, pod, "containerStatuses", "pytorch", 0);
    }
}
