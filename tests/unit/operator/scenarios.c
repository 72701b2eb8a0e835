/* scenarios.c - stories of one job: what its pods do, what its user does, and how it has to end. */
#include "converge.h"
#include "test.h"

#include <stdio.h>

static int wrong(int attempt, int index)
{
    (void)attempt;
    return index == 1 ? 1 : -1;
}

static int late_once(int attempt, int index)
{
    if (attempt == 0)
        return index == 1 ? LAB_PENDING : LAB_RUNS;
    return 0;
}

static int stuck_once(int attempt, int index)
{
    if (attempt == 0)
        return index == 1 ? 137 : LAB_STUCK;
    return 0;
}

/* Pauses the job once it runs, and lets it continue once its pods are gone. */
static void pause_once(struct lab *l)
{
    static const char *const EDITS[] = {"{'spec':{'suspend':true}}", "{'spec':{'suspend':false}}"};
    static const char *const PHASES[] = {"Running", "Paused"};

    if (l->step < 2 && lab_status_is(l, LAB_JOB, "phase", PHASES[l->step])) {
        assert_true(l->step == 0 || fake_count(l->server, LAB_PODS) == 0); /* with Paused no pod is left */
        lab_put(l, LAB_JOB, EDITS[l->step++]);
    }
}

/* Pod 1 is killed in its first life; pod 0 ends well when it may. */
static int replaced_once(int life, int index)
{
    if (index == 0)
        return 0;
    return index == 1 && life == 0 ? 137 : LAB_RUNS;
}

static void wait_for_replacement(struct lab *l)
{
    bool replaced = false;

    for (int i = 0; i < l->n_pods; i++)
        replaced |= l->pods[i].restart == 1 && l->pods[i].running;
    l->hold_master = !replaced || !lab_status_is(l, LAB_JOB, "phase", "Running");
    if (l->step)
        l->hold_master = false;
    else
        l->step = !l->hold_master;
}

static int master_alone(int life, int index)
{
    (void)life;
    return index == 0 ? 0 : LAB_RUNS;
}

/* Two pods, three, one, two; then pod 0 may end. */
static void scale(struct lab *l)
{
    static const struct {
        const char *ready, *edit;
        int pods;
    } STEPS[] = {
        {"2/2", "{'spec':{'elastic':{'expectedReplicas':3}}}", 2},
        {"3/3", "{'spec':{'elastic':{'expectedReplicas':1}}}", 3},
        {"1/1", "{'spec':{'elastic':{'expectedReplicas':2}}}", 1},
        {"2/2", "{}", 2},
    };

    if (l->step < (int)ARRAY_LEN(STEPS) && fake_count(l->server, LAB_PODS) == STEPS[l->step].pods &&
        lab_status_is(l, LAB_JOB, "ready", STEPS[l->step].ready))
        lab_put(l, LAB_JOB, STEPS[l->step++].edit);
    l->hold_master = l->step < (int)ARRAY_LEN(STEPS);
}

static void delete_it(struct lab *l, const char *finalizers)
{
    char body[128];

    if (l->step || !lab_status_is(l, LAB_JOB, "phase", "Running"))
        return;
    snprintf(body, sizeof(body), "{'metadata':{'finalizers':[%s]}}", finalizers);
    lab_put(l, LAB_JOB, body);
    assert_true(fake_delete(l->server, LAB_JOB));
    l->step = 1;
}

static void delete_background(struct lab *l)
{
    delete_it(l, "");
}

static void delete_foreground(struct lab *l)
{
    delete_it(l, "'foregroundDeletion'");
}

#define TENSORBOARD_SPEC "'logDir':{'pvc':[{'name':'p','subPath':['./log']}]}"

static int64_t tensorboards(struct lab *l)
{
    cleanup_json cJSON *d = lab_get(l, LAB_DEPLOYMENTS "/j-tensorboard");

    return d ? json_i64(json_child(d, "spec"), "replicas", -1) : -1;
}

/* While the job runs, its TensorBoard is added, suspended, resumed, and suspended again. */
static void switch_tensorboard(struct lab *l)
{
    static const struct {
        int64_t replicas;
        const char *edit;
    } STEPS[] = {
        {-1, "{'spec':{'tensorboardSpec':{" TENSORBOARD_SPEC "}}}"},
        {1, "{'spec':{'tensorboardSpec':{'suspend':true}}}"},
        {0, "{'spec':{'tensorboardSpec':{'suspend':false}}}"},
        {1, "{'spec':{'tensorboardSpec':{'suspend':true}}}"},
        {0, "{}"},
    };

    if (l->step < (int)ARRAY_LEN(STEPS) && lab_status_is(l, LAB_JOB, "phase", "Running") &&
        tensorboards(l) == STEPS[l->step].replicas)
        lab_put(l, LAB_JOB, STEPS[l->step++].edit);
    l->hold_master = l->step < (int)ARRAY_LEN(STEPS);
}

static int image_missing(int attempt, int index)
{
    (void)index;
    return attempt == 0 ? LAB_PENDING : 0;
}

/* Its pods cannot start; then their template is corrected. */
static void correct_template(struct lab *l)
{
    if (l->step || fake_count(l->server, LAB_PODS) < 2)
        return;
    lab_put(l, LAB_JOB,
            "{'spec':{'replicaSpecs':[{'type':'node','replicas':2,'restartPolicy':'ExitCode','template':{'"
            "spec':{'containers':[{'name':'pytorch','image':'corrected'}]}}}]}}");
    l->step = 1;
}

/* Someone deletes pod 1 once the job runs. */
static void remove_pod(struct lab *l)
{
    if (l->step || !lab_status_is(l, LAB_JOB, "phase", "Running"))
        return;
    assert_true(fake_remove(l->server, LAB_PODS "/j-node-1"));
    l->step = 1;
}

static void run_sidecars(struct lab *l)
{
    l->sidecar = true;
}

/* Kueue takes the quota back once, when all pods run. */
static void preempt(struct lab *l)
{
    if (l->step || !lab_workload_is(l, "PodsReady", "True"))
        return;
    lab_evict(l, "Preempted");
    l->step = 1;
}

/* The same, and an admission check lets each admission wait. */
static void preempt_with_checks(struct lab *l)
{
    l->queues.checks = true;
    preempt(l);
}

/* Someone deletes the Workload once. */
static void delete_workload(struct lab *l)
{
    cleanup_json cJSON *w = l->step ? NULL : lab_workload(l);
    char path[256];

    if (!w || !lab_status_is(l, LAB_JOB, "phase", "Running"))
        return;
    snprintf(path, sizeof(path), LAB_WORKLOADS "/%s", json_meta(w, "name"));
    assert_true(fake_delete(l->server, path));
    l->step = 1;
}

const struct scenario SCENARIOS[] = {
    {"success", 2, "", lab_well, NULL,
     "MasterSucceeded, Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods +2 -0: "
     "j-node-0/0 j-node-1/0; services +1 -0; deployments +0 -0",
     false},
    {"killed-once", 2, "", lab_killed_once, NULL,
     "MasterSucceeded, Succeeded attempt=1 backoff=1 disruptions=0 failures=1 restarts=1; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     false},
    {"backoff-limit", 1, ",'runPolicy':{'backoffLimit':2}", lab_killed, NULL,
     "BackoffLimitExceeded, Failed attempt=2 backoff=2 disruptions=0 failures=3 restarts=2; pods +3 -2: "
     "j-node-0/0 j-node-0/1 j-node-0/2; services +1 -0; deployments +0 -0",
     false},
    {"permanent", 2, "", wrong, NULL,
     "PermanentExitCode, Failed attempt=0 backoff=0 disruptions=0 failures=1 restarts=0; pods +2 -1: "
     "j-node-0/0 j-node-1/0; services +1 -0; deployments +0 -0",
     false},
    {"deadline", 2, ",'runPolicy':{'activeDeadlineSeconds':180}", lab_forever, NULL,
     "DeadlineExceeded, Failed attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods +2 -2: "
     "j-node-0/0 j-node-1/0; services +1 -0; deployments +0 -0",
     false},
    {"ttl", 2, ",'runPolicy':{'ttlSecondsAfterFinished':20}", lab_well, NULL,
     "gone, - attempt=-1 backoff=-1 disruptions=-1 failures=0 restarts=-1; pods +2 -2: j-node-0/0 "
     "j-node-1/0; services +1 -1; deployments +0 -0",
     false},
    {"delete-background", 2, "", lab_forever, delete_background,
     "gone, - attempt=-1 backoff=-1 disruptions=-1 failures=0 restarts=-1; pods +2 -2: j-node-0/0 "
     "j-node-1/0; services +1 -1; deployments +0 -0",
     false},
    {"delete-foreground", 2, "", lab_forever, delete_foreground,
     "gone, - attempt=-1 backoff=-1 disruptions=-1 failures=0 restarts=-1; pods +2 -2: j-node-0/0 "
     "j-node-1/0; services +1 -1; deployments +0 -0",
     false},
    {"tensorboard", 1, ",'tensorboardSpec':{" TENSORBOARD_SPEC "}", lab_well, NULL,
     "MasterSucceeded, Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods +1 -0: "
     "j-node-0/0; services +2 -0; deployments +1 -0",
     false},
    {"tensorboard-switched", 1, "", lab_well, switch_tensorboard,
     "MasterSucceeded, Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods +1 -0: "
     "j-node-0/0; services +2 -0; deployments +1 -0",
     false},
    {"pause-resume", 2, ",'runMode':{'pause':{'resumeSpecs':[{'type':'node','args':['--resume']}]}}",
     lab_well_later, pause_once,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=0 restarts=0; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     false},
    {"replica", 3, ",'runPolicy':{'restartScope':'Replica','cleanUpPolicy':'All'}", replaced_once,
     wait_for_replacement,
     "MasterSucceeded, Succeeded attempt=0 backoff=1 disruptions=0 failures=1 restarts=1; pods +4 -4: "
     "j-node-0/0 j-node-1/0 j-node-1/0.1 j-node-2/0; services +1 -0; deployments +0 -0",
     false},
    {"scale", 2,
     ",'torchrunConfig':{'enabled':true,'maxRestarts':1},'runPolicy':{'cleanUpPolicy':'All'},'elastic':{'"
     "enabled':true,'minReplicas':1,'maxReplicas':4,'expectedReplicas':2}",
     master_alone, scale,
     "MasterSucceeded, Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods +4 -4: "
     "j-node-0/0 j-node-1/0 j-node-1/0.1 j-node-2/0; services +1 -0; deployments +0 -0",
     false},
    {"start-deadline", 2, ",'runPolicy':{'startDeadlineSeconds':320}", late_once, NULL,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=1 restarts=1; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     false},
    {"template", 2, "", image_missing, correct_template,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=0 restarts=0; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     false},
    {"pod-removed", 2, "", lab_well_later, remove_pod,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=1 failures=1 restarts=1; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     false},
    {"force-delete", 2, ",'runPolicy':{'forceDeleteAfterSeconds':20}", stuck_once, NULL,
     "MasterSucceeded, Succeeded attempt=1 backoff=1 disruptions=0 failures=1 restarts=1; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     false},
    /* The pods stay: the kubelet ends what runs beside the training. */
    {"sidecar", 2, ",'runPolicy':{'sidecarGraceSeconds':10}", lab_well, run_sidecars,
     "MasterSucceeded, Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods +2 -0: "
     "j-node-0/0 j-node-1/0; services +1 -0; deployments +0 -0",
     false},
    {"preempted", 2, "", lab_well_later, preempt,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=0 restarts=0; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     true},
    {"preempted-with-checks", 2, "", lab_well_later, preempt_with_checks,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=0 restarts=0; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     true},
    {"workload-deleted", 2, "", lab_well_later, delete_workload,
     "MasterSucceeded, Succeeded attempt=1 backoff=0 disruptions=0 failures=0 restarts=0; pods +4 -2: "
     "j-node-0/0 j-node-0/1 j-node-1/0 j-node-1/1; services +1 -0; deployments +0 -0",
     true},
    {"delete-queued", 2, "", lab_forever, delete_foreground,
     "gone, - attempt=-1 backoff=-1 disruptions=-1 failures=0 restarts=-1; pods +2 -2: j-node-0/0 "
     "j-node-1/0; services +1 -1; deployments +0 -0",
     true},
};

const size_t N_SCENARIOS = ARRAY_LEN(SCENARIOS);
