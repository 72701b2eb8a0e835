/* test_converge.c - whatever single request fails, and wherever the operator dies, a job comes to the same
 * end with the same pods: the scenario is run again with request 1, 2, 3 ... struck, until a run stays
 * untouched.
 *
 * usage: test_converge [scenario [fault]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#include <stdio.h>
#include <string.h>

enum { SUMMARY_BYTES = 1024, REQUESTS_MAX = 400, TURNS_MAX = 20000, CRASH = -1 };

struct scenario {
    const char *name;
    int replicas;
    const char *policy; /* members of spec after replicaSpecs */
    int (*script)(int attempt, int index);
    const char *want;
    void (*meddle)(struct lab *l); /* what the user does meanwhile; NULL: nothing */
};

struct fault_kind {
    const char *name;
    int fault; /* enum fake_fault, or CRASH */
    int status;
    int retry_after_s;
};

static int succeed(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return 0;
}

static int killed_once(int attempt, int index)
{
    if (attempt == 0)
        return index == 1 ? 137 : -1;
    return 0;
}

static int always_killed(int attempt, int index)
{
    (void)attempt;
    (void)index;
    return 137;
}

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

static int second_attempt(int attempt, int index)
{
    (void)index;
    return attempt == 0 ? LAB_RUNS : 0;
}

static bool phase_is(struct lab *l, const char *want)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *phase = json_str(json_find(job, (const char *[]){"status", NULL}), "phase");

    return phase && strcmp(phase, want) == 0;
}

/* Pauses the job once it runs, and lets it go on once its pods are gone. */
static void pause_once(struct lab *l)
{
    static const char *const EDITS[] = {"{\"spec\":{\"suspend\":true}}", "{\"spec\":{\"suspend\":false}}"};
    static const char *const PHASES[] = {"Running", "Paused"};

    if (l->step < 2 && phase_is(l, PHASES[l->step]) && (l->step == 0 || fake_count(l->server, LAB_PODS) == 0))
        assert_true(fake_put(l->server, LAB_JOB, EDITS[l->step++]));
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
    l->hold_master = !replaced || !phase_is(l, "Running");
    if (l->step)
        l->hold_master = false;
    else
        l->step = !l->hold_master;
}

static bool ready_is(struct lab *l, const char *want)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *ready = json_str(json_find(job, (const char *[]){"status", NULL}), "ready");

    return ready && strcmp(ready, want) == 0;
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
        {"2/2", "{\"spec\":{\"elastic\":{\"expectedReplicas\":3}}}", 2},
        {"3/3", "{\"spec\":{\"elastic\":{\"expectedReplicas\":1}}}", 3},
        {"1/1", "{\"spec\":{\"elastic\":{\"expectedReplicas\":2}}}", 1},
        {"2/2", "{}", 2},
    };

    if (l->step < (int)ARRAY_LEN(STEPS) && fake_count(l->server, LAB_PODS) == STEPS[l->step].pods &&
        ready_is(l, STEPS[l->step].ready))
        assert_true(fake_put(l->server, LAB_JOB, STEPS[l->step++].edit));
    l->hold_master = l->step < (int)ARRAY_LEN(STEPS);
}

static const struct scenario SCENARIOS[] = {
    {"success", 2, "", succeed,
     "Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods j-node-0/0 j-node-1/0 ; left: "
     "2 pods, 1 "
     "services, 0 deployments",
     NULL},
    {"killed-once", 2, "", killed_once,
     "Succeeded attempt=1 backoff=1 disruptions=0 failures=1 restarts=1; pods j-node-0/0 j-node-0/1 "
     "j-node-1/0 "
     "j-node-1/1 ; left: 2 pods, 1 services, 0 deployments",
     NULL},
    {"backoff-limit", 1, ",\"runPolicy\":{\"backoffLimit\":2}", always_killed,
     "Failed attempt=2 backoff=2 disruptions=0 failures=3 restarts=2; pods j-node-0/0 j-node-0/1 j-node-0/2 "
     "; left: 1 "
     "pods, 1 services, 0 deployments",
     NULL},
    {"permanent", 2, "", wrong,
     "Failed attempt=0 backoff=0 disruptions=0 failures=1 restarts=0; pods j-node-0/0 j-node-1/0 ; left: 1 "
     "pods, 1 "
     "services, 0 deployments",
     NULL},
    {"tensorboard", 1,
     ",\"tensorboardSpec\":{\"logDir\":{\"pvc\":[{\"name\":\"p\",\"subPath\":[\"./log\"]}]}}", succeed,
     "Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods j-node-0/0 ; left: 1 pods, 2 "
     "services, 1 "
     "deployments",
     NULL},
    {"pause-resume", 2,
     ",\"runMode\":{\"pause\":{\"resumeSpecs\":[{\"type\":\"node\",\"args\":[\"--resume\"]}]}}",
     second_attempt,
     "Succeeded attempt=1 backoff=0 disruptions=0 failures=0 restarts=0; pods j-node-0/0 j-node-0/1 "
     "j-node-1/0 j-node-1/1 ; left: 2 pods, 1 services, 0 deployments",
     pause_once},
    {"replica", 3, ",\"runPolicy\":{\"restartScope\":\"Replica\",\"cleanUpPolicy\":\"All\"}", replaced_once,
     "Succeeded attempt=0 backoff=1 disruptions=0 failures=1 restarts=1; pods j-node-0/0 j-node-1/0 "
     "j-node-1/0.1 j-node-2/0 ; left: 0 pods, 1 services, 0 deployments",
     wait_for_replacement},
    {"scale", 2,
     ",\"torchrunConfig\":{\"enabled\":true,\"maxRestarts\":1},\"runPolicy\":{\"cleanUpPolicy\":\"All\"},"
     "\"elastic\":{\"enabled\":true,\"minReplicas\":1,\"maxReplicas\":4,\"expectedReplicas\":2}",
     master_alone,
     "Succeeded attempt=0 backoff=0 disruptions=0 failures=0 restarts=0; pods j-node-0/0 j-node-1/0 "
     "j-node-1/0.1 j-node-2/0 ; left: 0 pods, 1 services, 0 deployments",
     scale},
    {"start-deadline", 2, ",\"runPolicy\":{\"startDeadlineSeconds\":20}", late_once,
     "Succeeded attempt=1 backoff=0 disruptions=0 failures=1 restarts=1; pods j-node-0/0 j-node-0/1 "
     "j-node-1/0 j-node-1/1 ; left: 2 pods, 1 services, 0 deployments",
     NULL},
    {"force-delete", 2, ",\"runPolicy\":{\"forceDeleteAfterSeconds\":20}", stuck_once,
     "Succeeded attempt=1 backoff=1 disruptions=0 failures=1 restarts=1; pods j-node-0/0 j-node-0/1 "
     "j-node-1/0 j-node-1/1 ; left: 2 pods, 1 services, 0 deployments",
     NULL},
};

static const struct fault_kind FAULTS[] = {
    {"crash", CRASH, 0, 0},
    {"conflict", FAKE_STATUS, 409, 0},
    {"internal-error", FAKE_STATUS, 500, 0},
    {"unavailable", FAKE_STATUS, 503, 1},
    {"drop-before", FAKE_DROP_BEFORE, 0, 0},
    {"drop-after", FAKE_DROP_AFTER, 0, 0},
    {"reset-body", FAKE_RESET_BODY, 0, 0},
    {"garbage-body", FAKE_GARBAGE_BODY, 0, 0},
};

static void submit(struct lab *l, const struct scenario *s)
{
    char body[1024];

    snprintf(body, sizeof(body),
             "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND
             "\",\"metadata\":{\"name\":\"j\","
             "\"namespace\":\"ns\"},\"spec\":{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":%d,"
             "\"restartPolicy\":"
             "\"ExitCode\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}"
             "]%s}}",
             s->replicas, s->policy);
    assert_true(fake_put(l->server, LAB_JOB, body));
}

static bool finished(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    return json_str(json_find(job, (const char *[]){"status", NULL}), "completionTime") != NULL;
}

/* The end state and the pods that were ever made. False: the fault found no n-th request to strike. */
static bool run(const struct scenario *s, const struct fault_kind *f, int n, char *out, size_t size)
{
    struct lab l;
    char summary[256];
    char history[512];
    bool struck = false;

    lab_start(&l, s->script);
    submit(&l, s);
    struct fake_fault_plan plan = {.request = n};
    if (f && f->fault != CRASH) {
        plan.fault = (enum fake_fault)f->fault;
        plan.status = f->status;
        plan.retry_after_s = f->retry_after_s;
        fake_plan_fault(l.server, &plan);
    }
    for (int turns = 0; !(finished(&l) && lab_settled(&l)); turns++) {
        lab_turn(&l);
        if (s->meddle)
            s->meddle(&l);
        if (f && f->fault == CRASH && !struck && lab_requests(&l) >= n) {
            struck = true;
            lab_crash(&l);
        }
        if (turns > TURNS_MAX) {
            lab_explain(&l);
            fail_msg("%s/%s/%d: it did not come to an end", s->name, f ? f->name : "-", n);
        }
    }
    if (f && f->fault != CRASH)
        struck = fake_faults_done(l.server) > 0;
    lab_summary(&l, summary, sizeof(summary));
    lab_pod_history(&l, history, sizeof(history));
    snprintf(out, size, "%s; pods %s; left: %d pods, %d services, %d deployments", summary, history,
             fake_count(l.server, LAB_PODS), fake_count(l.server, LAB_SERVICES),
             fake_count(l.server, LAB_DEPLOYMENTS));
    lab_stop(&l);
    return struck;
}

struct sweep {
    const struct scenario *s;
    const struct fault_kind *f;
};

static void run_sweep(void **state)
{
    const struct sweep *sweep = *state;
    const char *want = sweep->s->want;
    char got[SUMMARY_BYTES];
    int n = 1;

    run(sweep->s, NULL, 0, got, sizeof(got));
    assert_string_equal(got, want);
    while (run(sweep->s, sweep->f, n, got, sizeof(got))) {
        if (strcmp(got, want) != 0)
            fail_msg("%s, %s at request %d:\nwant %s\ngot  %s", sweep->s->name, sweep->f->name, n, want, got);
        assert_true(++n < REQUESTS_MAX);
    }
    assert_string_equal(got, want);
    assert_true(n > 5);
    print_message("%s, %s: %d runs, each: %s\n", sweep->s->name, sweep->f->name, n - 1, want);
}

int main(int argc, char **argv)
{
    static struct sweep sweeps[ARRAY_LEN(SCENARIOS) * ARRAY_LEN(FAULTS)];
    static struct CMUnitTest tests[ARRAY_LEN(sweeps)];
    static char names[ARRAY_LEN(sweeps)][64];
    size_t n = 0;

    for (size_t s = 0; s < ARRAY_LEN(SCENARIOS); s++) {
        for (size_t f = 0; f < ARRAY_LEN(FAULTS); f++) {
            if ((argc > 1 && strcmp(argv[1], SCENARIOS[s].name) != 0) ||
                (argc > 2 && strcmp(argv[2], FAULTS[f].name) != 0))
                continue;
            sweeps[n] = (struct sweep){&SCENARIOS[s], &FAULTS[f]};
            snprintf(names[n], sizeof(names[n]), "%s/%s", SCENARIOS[s].name, FAULTS[f].name);
            tests[n] = (struct CMUnitTest){names[n], run_sweep, NULL, NULL, &sweeps[n]};
            n++;
        }
    }
    if (n == 0) {
        fprintf(stderr, "no such scenario or fault\n");
        return 2;
    }
    return _cmocka_run_group_tests("converge", tests, n, NULL, NULL);
}
