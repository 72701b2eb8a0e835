/* test_failover.c - two processes of the real program and one lease: the leader is stopped (SIGSTOP) with a write under
 * way or just done, or at another moment of a job's life (enum moment), the other one takes over, and then the first one goes
 * on. Nothing that it writes after its lease was taken reaches the API server, and the job ends as if there had been no trouble.
 *
 * It is stopped where it waits: between the last look at the clock and the kernel's send() lie microseconds that no lease
 * can guard; what arrives late then is harmless by the versions and UIDs that it names (test_sweeps takeover).
 *
 * usage: test_failover <ptj-operator> [share of [seed]]     share 0 of 4: trials 0, 4, 8 ...
 */
#include "common/fsutil.h"
#include "converge.h"
#include "faults.h"
#include "process.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRIALS_MAX = 180,
    TICK_US = 20000,
    PATIENCE_MS = 1200000,
    QUIET_TICKS = 20,
};

/* When it is stopped, and how many trials do that: of `make test`, and in full. */
enum moment { AT_A_WRITE, WHILE_IT_RENEWS, WHEN_TOLD, WHILE_IT_READS, AT_ANY_TIME, MOMENTS };

static const struct {
    const char *name;
    int trials, in_full;
} MOMENT_OF[MOMENTS] = {
    [AT_A_WRITE] = {"at a write", 6, 100},
    [WHILE_IT_RENEWS] = {"while it renews its lease", 2, 20},
    [WHEN_TOLD] = {"when a watch tells something", 2, 20},
    [WHILE_IT_READS] = {"while its watches begin anew", 1, 20},
    [AT_ANY_TIME] = {"at any time", 1, 20},
};

static const char *program;
static unsigned seed = 20261121;

/* The stories, how many writes each of them surely takes, and after how many changes it is surely not over, though the operator
 * continues. */
static const struct {
    const char *scenario;
    int writes, changes;
} STORIES[] = {{"success", 6, 3}, {"killed-once", 10, 16}};

struct trial {
    enum moment moment;
    int number; /* of those of its moment */
    unsigned dice;
    const struct scenario *scenario;
    int writes, changes;
    struct lab lab; /* without operators: the server, kubelet and garbage collector, */
    bool still;     /* who do nothing now */
    char dir[64];
    struct process operators[2];
};

/* Which operator sent it; -1: none. */
static int sender(const struct fake_request *r)
{
    const char *who = strstr(r->authorization, "operator-");

    return who ? atoi(who + strlen("operator-")) : -1;
}

static bool takes_lease(const struct fake_request *r)
{
    return strstr(r->path, "/leases") && (strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0) &&
           r->status >= 200 && r->status < 300;
}

/* Who wrote the lease last; -1: nobody. */
static int holder(struct fake_apiserver *s)
{
    struct fake_request r;
    int who = -1;

    for (int i = 0; fake_log_at(s, i, &r); i++)
        if (takes_lease(&r))
            who = sender(&r);
    return who;
}

#define WAIT_FOR(t, condition)                                                                               \
    for (int64_t limit_ms = clock_mono_ms() + PATIENCE_MS; !(condition);)                                    \
    wait_a_little(t, limit_ms, #condition)

static void wait_a_little(struct trial *t, int64_t limit_ms, const char *what)
{
    if (clock_mono_ms() > limit_ms)
        fail_msg("trial %d %s of seed %u: not %s", t->number, MOMENT_OF[t->moment].name, seed, what);
    if (!t->still)
        lab_cluster(&t->lab);
    usleep(TICK_US);
}

/* It sends the token operator-I, and its lease lasts 3 s. */
static void start_operator(struct trial *t, int i)
{
    char file[96], token[128], server[160];
    struct err err;

    snprintf(file, sizeof(file), "%s/token-%d", t->dir, i);
    snprintf(token, sizeof(token), "operator-%d", i);
    assert_int_equal(fs_write_atomic(file, token, strlen(token), &err), 0);
    snprintf(server, sizeof(server), "--server=%s", fake_apiserver_url(t->lab.server));
    snprintf(token, sizeof(token), "--token-file=%s", file);
    process_start(&t->operators[i],
                  (const char *[]){program, server, token, "--metrics-bind-address=0",
                                   "--health-probe-bind-address=0", "--leader-elect-namespace=sys",
                                   "--leader-elect-lease-duration=3", NULL});
}

/* Returns with a change that has just been made. Then the cluster stands still, so that the job does not end. */
static void let_happen(struct trial *t, int changes)
{
    uint64_t enough = fake_version(t->lab.server) + (uint64_t)changes;
    int64_t deadline = clock_mono_ms() + PATIENCE_MS;

    while (lab_cluster(&t->lab), fake_version(t->lab.server) < enough) {
        if (clock_mono_ms() > deadline)
            fail_msg("trial %d of seed %u: %d changes did not happen", t->number, seed, changes);
        usleep(TICK_US / 10);
    }
    t->still = true;
}

static bool is_finished(struct trial *t)
{
    cleanup_json cJSON *job = lab_get(&t->lab, LAB_JOB);

    return json_str(json_child(job, "status"), "completionTime") != NULL;
}

/* Every write but those of the lease was sent by who held it. Returns how many the first one made. */
static int judge_writers(struct trial *t)
{
    struct fake_request r;
    int who = -1;
    int of_first = 0;

    for (int i = 0; fake_log_at(t->lab.server, i, &r); i++) {
        if (takes_lease(&r))
            who = sender(&r);
        if (!fake_log_is_write(t->lab.server, i))
            continue;
        if (sender(&r) != who)
            fail_msg("trial %d of seed %u: operator %d sent %s %s while operator %d held the lease",
                     t->number, seed, sender(&r), r.method, r.path, who);
        of_first += who == 0;
    }
    return of_first;
}

/* The job begins, and the moment has come. Returns how many writes the first one has made by then at least. */
static int await_moment(struct trial *t)
{
    static const enum fake_fault WAYS[] = {FAKE_HANG_BEFORE, FAKE_HANG_AFTER, FAKE_NOTHING};
    struct fake_apiserver *s = t->lab.server;
    struct fake_fault_plan plan = {.request = 1 + t->number / 6 % t->writes,
                                   .writes = t->moment == AT_A_WRITE,
                                   .fault = WAYS[t->number % (int)ARRAY_LEN(WAYS)]};

    if (t->moment == AT_A_WRITE)
        fake_plan_fault(s, &plan);
    converge_submit(&t->lab, t->scenario);
    if (t->moment != AT_A_WRITE)
        let_happen(t, 1 + (int)process_roll(&t->dice, (unsigned)t->changes));
    if (t->moment == WHILE_IT_RENEWS) {
        plan.method = "PUT";
        plan.path_part = "/leases/";
        plan.request = 1 + (int)process_roll(&t->dice, 2);
        fake_plan_fault(s, &plan);
    }
    if (t->moment == WHILE_IT_READS) {
        /* The fault strikes the first request: no other has to wait. */
        fake_plan_fault(s, &(struct fake_fault_plan){.request = 1 + (int)process_roll(&t->dice, 3),
                                                     .method = "WATCH",
                                                     .fault = FAKE_NOTHING});
        if (process_roll(&t->dice, 2))
            fake_compact(s);
        fake_close_watches(s);
    }
    if (t->moment == AT_ANY_TIME)
        usleep(process_roll(&t->dice, 30000));
    if (t->moment != WHEN_TOLD && t->moment != AT_ANY_TIME)
        WAIT_FOR(t, fake_faults_done(s) > 0);
    if (t->moment != WHEN_TOLD)
        usleep(process_roll(&t->dice, 3000));
    return t->moment == AT_A_WRITE ? plan.request : 0;
}

/* Trials in which the job ended before the first operator was stopped, as on a machine that is too slow: nothing was left to be
 * done wrong. */
static int too_late;

static void trial(void **state)
{
    struct trial *t = *state;
    struct lab *l = &t->lab;
    char ending[CONVERGE_TEXT_BYTES];
    int at;

    start_operator(t, 0);
    WAIT_FOR(t, process_says(&t->operators[0], "\"leading\""));
    start_operator(t, 1);
    WAIT_FOR(t, process_says(&t->operators[1], "waiting for the lease"));
    int writes = await_moment(t);
    process_stop(&t->operators[0], &t->dice);
    too_late += t->moment != AT_A_WRITE && is_finished(t);
    t->still = false;
    bool led = holder(l->server) == 0; /* a machine may be too slow for so short a lease */
    WAIT_FOR(t, holder(l->server) == 1);
    fake_plan_fault(l->server, NULL);
    usleep(process_roll(&t->dice, 300000));
    assert_int_equal(kill(t->operators[0].pid, SIGCONT), 0);
    WAIT_FOR(t, is_finished(t));
    WAIT_FOR(t, process_says(&t->operators[0], "waiting for the lease"));
    for (int i = 0; i < QUIET_TICKS; i++) {
        lab_cluster(l);
        usleep(TICK_US);
    }
    process_end(&t->operators[0]);
    process_end(&t->operators[1]);
    int of_first = judge_writers(t);
    assert_true(of_first >= writes || !led);
    const char *broken = fake_broken_rule(l->server, FAKE_RULES_ALL, &at);
    if (broken)
        fail_msg("trial %d of seed %u: %s, at change %d", t->number, seed, broken, at);
    lab_ending(l, true, ending, sizeof(ending));
    assert_string_equal(ending, t->scenario->want);
    print_message("%s: stopped %s, %d writes by the first in all\n", t->scenario->name,
                  MOMENT_OF[t->moment].name, of_first);
}

static int setup(void **state)
{
    struct trial *t = *state;

    t->dice = seed + (unsigned)t->number + 1000 * (unsigned)t->moment;
    snprintf(t->dir, sizeof(t->dir), "/tmp/test_failover.XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    for (int i = 0; i < 2; i++)
        snprintf(t->operators[i].log, sizeof(t->operators[i].log), "%s/log-%d", t->dir, i);
    t->scenario = converge_scenario(STORIES[t->number % 2].scenario);
    t->writes = STORIES[t->number % 2].writes;
    t->changes = STORIES[t->number % 2].changes;
    t->lab = (struct lab){.server = fake_apiserver_start(), .script = t->scenario->script, .collects = true};
    t->lab.gang = t->scenario->replicas;
    fake_add_kind(t->lab.server, "/apis/" TRAINJOB_API_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    fake_pods_linger(t->lab.server, true);
    return 0;
}

static int teardown(void **state)
{
    struct trial *t = *state;

    char file[96];

    for (int i = 0; i < 2; i++) {
        process_remove(&t->operators[i]);
        snprintf(file, sizeof(file), "%s/token-%d", t->dir, i);
        unlink(file);
    }
    rmdir(t->dir);
    fake_apiserver_stop(t->lab.server);
    return 0;
}

int main(int argc, char **argv)
{
    static struct trial trials[TRIALS_MAX];
    static struct CMUnitTest tests[TRIALS_MAX];
    static char names[TRIALS_MAX][48];
    int share = argc > 3 ? atoi(argv[2]) : 0;
    int of = argc > 3 ? atoi(argv[3]) : 1;
    int all = 0;
    size_t n = 0;

    if (argc < 2 || of < 1) {
        fprintf(stderr, "usage: test_failover <ptj-operator> [share of [seed]]\n");
        return 2;
    }
    program = argv[1];
    seed = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : seed;
    for (enum moment m = 0; m < MOMENTS; m++)
        for (int i = 0; i < (faults_in_full() ? MOMENT_OF[m].in_full : MOMENT_OF[m].trials); i++) {
            if (all++ % of != share)
                continue;
            assert_true(n < TRIALS_MAX);
            trials[n] = (struct trial){.moment = m, .number = i};
            snprintf(names[n], sizeof(names[n]), "%s, %d", MOMENT_OF[m].name, i);
            tests[n] = (struct CMUnitTest){names[n], trial, setup, teardown, &trials[n]};
            n++;
        }
    printf("seed %u\n", seed);
    int failed = _cmocka_run_group_tests("failover", tests, n, NULL, NULL);
    faults_report("F7", (int)n, (int)n - failed);
    if (too_late > ((int)n + 1) / 2) {
        fprintf(stderr, "test_failover: in %d of %d trials the job ended before an operator was stopped\n",
                too_late, (int)n);
        return 1;
    }
    return failed;
}
