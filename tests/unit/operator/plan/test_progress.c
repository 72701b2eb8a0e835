/* test_progress.c - which pod is polled for progress, and which answer starts a reconcile; golden cases (progress-*) show what a plan
 * makes of it.
 */
#include "operator/plan/statusprogress.h"
#include "test.h"

#define NOW INT64_C(1795514400000)

/* Pod 0 of a job that runs torchrun. */
struct rig {
    struct trainjob job;
    struct pod pod, other;
    const struct pod *pods[2];
    struct plan_input in;
};

static struct pod running(const char *name, const char *ip)
{
    return (struct pod){
        .name = name, .ip = ip, .attempt = 3, .phase = POD_RUNNING, .training = {.state = CONTAINER_RUNNING}};
}

static void rig_init(struct rig *r)
{
    *r = (struct rig){.pod = running("j-node-0", "10.0.0.1"), .other = running("j-node-1", "10.0.0.2")};
    r->job = (struct trainjob){.name = "j"};
    r->job.spec.replica_specs[0] = (struct replica_spec){.type = "node", .replicas = 2};
    r->job.spec.n_replica_specs = 1;
    r->job.spec.torchrun.enabled = true;
    r->job.status = (struct jobstatus){.phase = JOB_RUNNING, .attempt = 3};
    r->pods[0] = &r->other;
    r->pods[1] = &r->pod;
    r->in = (struct plan_input){.job = &r->job, .pods = r->pods, .n_pods = 2};
}

/* What is otherwise. */
struct other {
    const char *what;
    enum job_phase phase; /* JOB_NONE: it runs */
    const char *managed_by;
    bool deleting, invalid, paused, no_torchrun, debug;                         /* the job */
    bool earlier_attempt, no_address, host_network, terminating, unknown, gone; /* its pod */
    enum container_state training;                                              /* CONTAINER_NONE: it runs */
    bool asked;
};

static void apply(struct rig *r, const struct other *o)
{
    struct trainjob_spec *spec = &r->job.spec;

    r->job.status.phase = o->phase == JOB_NONE ? JOB_RUNNING : o->phase;
    spec->run_policy.managed_by = o->managed_by;
    r->job.deleting = o->deleting;
    if (o->invalid) {
        r->job.spec_error = "spec: no";
        spec->n_replica_specs = 0;
        spec->replica_specs[0].type = NULL;
    }
    spec->paused = o->paused;
    spec->torchrun.enabled = !o->no_torchrun;
    spec->debug.enabled = o->debug;
    r->pod.attempt -= o->earlier_attempt;
    r->pod.ip = o->no_address ? "" : r->pod.ip;
    r->pod.host_network = o->host_network;
    r->pod.deletion_ms = o->terminating ? 5 : 0;
    r->pod.phase = o->unknown ? POD_PHASE_UNKNOWN : r->pod.phase;
    r->pod.training.state = o->training == CONTAINER_NONE ? CONTAINER_RUNNING : o->training;
    r->in.n_pods -= o->gone;
}

static void test_who_is_asked(void **state)
{
    static const struct other OTHERS[] = {
        {"nothing", .asked = true},
        {"ours by name", .managed_by = TRAINJOB_MANAGED_BY, .asked = true},
        {"pending", .phase = JOB_PENDING},
        {"succeeded", .phase = JOB_SUCCEEDED},
        {"deleting", .deleting = true},
        {"invalid", .invalid = true},
        {"of others", .managed_by = "example.org/other"},
        {"paused", .paused = true},
        {"no torchrun", .no_torchrun = true},
        {"debug", .debug = true},
        {"earlier attempt", .earlier_attempt = true},
        {"no address", .no_address = true},
        {"host network", .host_network = true},
        {"ended", .training = CONTAINER_TERMINATED},
        {"waits", .training = CONTAINER_WAITING},
        {"terminating", .terminating = true},
        {"unknown", .unknown = true},
        {"gone", .gone = true},
    };
    struct rig r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        rig_init(&r);
        apply(&r, &OTHERS[i]);
        if (progress_pod(&r.in) != (OTHERS[i].asked ? &r.pod : NULL))
            fail_msg("%s: %s", OTHERS[i].what, OTHERS[i].asked ? "not asked" : "asked");
    }
}

/* A job of many pods is not planned every 10 s only because one of them was polled. */
static void test_news(void **state)
{
    static const struct {
        int64_t percent, written_before_ms, slow_rank, told_before_ms;
        bool want;
    } ROWS[] = {
        {47, 1000, -1, 0, false},
        {48, 1000, -1, 0, true},
        {47, PROGRESS_REFRESH_MS - 1, -1, 0, false},
        {47, PROGRESS_REFRESH_MS, -1, 0, true},
        {47, NOW, -1, 0, true},   /* never */
        {47, -1000, -1, 0, true}, /* the clock was set back */
        {47, 1000, 3, NOW, true}, /* never reported */
        {47, 1000, 3, PROGRESS_SLOW_MS - 1, false},
        {47, 1000, 3, PROGRESS_SLOW_MS, true},
    };
    const struct jobprogress shown = {.time_ms = 1, .percent = 47};
    struct plan_progress in;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        in = (struct plan_progress){.answered = true,
                                    .answer = {.progress = {.time_ms = NOW, .percent = ROWS[i].percent},
                                               .slow_rank = (int32_t)ROWS[i].slow_rank},
                                    .written_ms = NOW - ROWS[i].written_before_ms,
                                    .slow_reported_ms = NOW - ROWS[i].told_before_ms};
        if (progress_is_news(&in, &shown, NOW) != ROWS[i].want)
            fail_msg("row %zu", i);
        in.answered = false;
        assert_false(progress_is_news(&in, &shown, NOW));
    }
    in = (struct plan_progress){.answered = true, .answer.slow_rank = -1}; /* it has seen nothing yet */
    assert_false(progress_is_news(&in, &shown, NOW));
    in.answer.progress = (struct jobprogress){.time_ms = NOW, .percent = 48};
    in.write_dropped = true; /* the API server dropped it */
    in.written_ms = NOW - PROGRESS_REFRESH_MS;
    assert_false(progress_is_news(&in, &shown, NOW));
    in.written_ms = NOW - PROGRESS_DROPPED_MS;
    assert_true(progress_is_news(&in, &shown, NOW));
    in = (struct plan_progress){.answered = true, /* the training stands still: nothing to write */
                                .answer = {.progress = shown, .slow_rank = -1},
                                .written_ms = NOW - PROGRESS_REFRESH_MS};
    assert_false(progress_is_news(&in, &shown, NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_is_asked), cmocka_unit_test(test_news)};

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
