/* test_jobmemory.c - what is remembered between two passes. */
#include "operator/jobmemory.h"
#include "test.h"

#include <stdio.h>

/* Caches that hear nothing. */
struct world {
    struct kube_loop *loop;
    struct kube_reconciler *reconciler;
    struct watches watches;
    struct jobmemory *m;
};

static struct world W;

static struct kube_transfer *never(void *ctx, const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err)
{
    (void)ctx, (void)req, (void)handler;
    (void)err_set(err, ERR_TRANSIENT, "no server");
    return NULL;
}

static void no_work(void *ctx, struct kube_work *w)
{
    (void)ctx;
    kube_work_done(w);
}

static void no_problem(void *ctx, const char *what, const struct err *err)
{
    (void)ctx, (void)what, (void)err;
}

static int set_up(void **state)
{
    static const struct kube_transport t = {.start = never};
    struct err err;

    (void)state;
    W.loop = kube_loop_new(clock_system(), &err);
    W.reconciler = kube_reconciler_new(
        W.loop, &t,
        &(struct kube_reconciler_options){.name = "r", .reconcile = no_work, .problem = no_problem});
    watches_add(&W.watches, W.reconciler, NULL, NULL, NULL);
    W.m = jobmemory_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    jobmemory_free(W.m);
    kube_reconciler_free(W.reconciler);
    kube_loop_free(W.loop);
    return 0;
}

static bool learn(const struct actions_result *r, const struct plan *plan, int64_t generation,
                  int64_t mono_ms)
{
    return jobmemory_record(W.m, &W.watches, r, &(struct jobmemory_pass){plan, "99", generation, 10}, 5000,
                            mono_ms);
}

static const struct plan PLAN;

static struct actions_result written(const char *version)
{
    struct actions_result r = {.ok = true, .status_written = true, .retry_after_ms = -1};

    snprintf(r.versions[CHILD_JOB], sizeof(r.versions[CHILD_JOB]), "%s", version);
    return r;
}

/* The highest version counts, in whatever order the answers came. */
static void test_own_writes_are_awaited(void **state)
{
    struct actions_result r = written("100");

    (void)state;
    assert_true(jobmemory_is_shown(W.m, &W.watches, CHILD_JOB));
    (void)learn(&r, &PLAN, 1, 50);
    assert_false(jobmemory_is_shown(W.m, &W.watches, CHILD_JOB));
    assert_true(jobmemory_is_shown(W.m, &W.watches, CHILD_POD));
    assert_int_equal(W.m->status_written_ms, 50);
    r = written("98");
    W.m->written[CHILD_JOB].lists = 7;
    (void)learn(&r, &PLAN, 1, 60);
    assert_string_equal(W.m->written[CHILD_JOB].version, "100");
    assert_int_equal(W.m->written[CHILD_JOB].lists, 0); /* a list has to come after this answer, too */
}

/* Of this version of the job, until a status is written from another one. */
static void test_a_refused_version_is_in_doubt(void **state)
{
    struct actions_result r = {.doubt = true, .lost = true, .retry_after_ms = -1};

    (void)state;
    assert_false(jobmemory_doubts(W.m, &W.watches, "99"));
    (void)learn(&r, &PLAN, 1, 50);
    assert_true(jobmemory_doubts(W.m, &W.watches, "99"));
    assert_false(jobmemory_doubts(W.m, &W.watches, "100"));
    assert_true(W.m->lost);
    assert_int_equal(jobmemory_rest_ms(W.m, "99", 60), 40);
    assert_int_equal(jobmemory_rest_ms(W.m, "100", 60), 0);
    (void)learn(&r, &PLAN, 1, 100); /* twice as long each time */
    assert_int_equal(jobmemory_rest_ms(W.m, "99", 100), 100);
    for (int i = 0; i < 20; i++)
        (void)learn(&r, &PLAN, 1, 100);
    assert_int_equal(jobmemory_rest_ms(W.m, "99", 100), 60000);
    r = (struct actions_result){.ok = true, .retry_after_ms = -1};
    (void)learn(&r, &PLAN, 1, 50);
    assert_true(W.m->lost);
    r = written("101");
    (void)learn(&r, &PLAN, 1, 50);
    assert_false(W.m->lost);
}

static void test_a_cache_that_is_behind(void **state)
{
    static const int64_t WANT_MS[] = {5000, 10000, 20000, 40000, 60000, 60000};

    (void)state;
    for (int again = 0; again < 2; again++) {
        int64_t now_ms = 1000;
        assert_false(jobmemory_is_overdue(W.m, CHILD_JOB, true, now_ms));
        for (size_t i = 0; i < ARRAY_LEN(WANT_MS); i++) {
            assert_false(jobmemory_is_overdue(W.m, CHILD_DEPLOYMENT, true, now_ms)); /* each for itself */
            assert_false(jobmemory_is_overdue(W.m, CHILD_DEPLOYMENT, false, now_ms));
            assert_false(jobmemory_is_overdue(W.m, CHILD_JOB, true, now_ms + WANT_MS[i] - 1));
            assert_true(jobmemory_is_overdue(W.m, CHILD_JOB, true, now_ms += WANT_MS[i]));
        }
        assert_false(jobmemory_is_overdue(W.m, CHILD_JOB, false, now_ms));
    }
}

static void test_a_pass_is_told_that_its_job_is_gone(void **state)
{
    struct jobmemory *held = W.m;

    (void)state;
    W.m->holder = &held;
    jobmemory_free(TAKE(W.m));
    assert_null(held);
}

/* A write that leaves the job at its version changed nothing, and the same one would not either. */
static void test_a_status_that_does_not_stay(void **state)
{
    struct actions_result r = written("100");

    (void)state;
    (void)learn(&r, &PLAN, 1, 50);
    assert_int_equal(W.m->status_written_ms, 50);
    r = written("99");
    (void)learn(&r, &PLAN, 1, 50);
    assert_int_equal(W.m->status_written_ms, 50 + 300000);
}

/* A progress has a time of its own: others than it are written as if it had not been, also where it does not stay. */
static void test_progress_keeps_its_own_time(void **state)
{
    static const struct plan ONLY = {.progressed = true, .progress_only = true, .slow_rank = true};
    static const struct plan TOO = {.progressed = true};
    static const struct plan SLOW = {.progressed = true, .slow_rank = true};
    struct actions_result r = written("99");

    (void)state;
    (void)learn(&r, &ONLY, 1, 50);
    assert_int_equal(W.m->status_written_ms, 0);
    assert_int_equal(W.m->progress.written_ms, 5000); /* a time to come would count as a clock set back */
    assert_true(W.m->progress.write_dropped);
    assert_int_equal(W.m->progress.slow_reported_ms, 5000);
    W.m->progress.written_ms = W.m->progress.slow_reported_ms = 1;
    r = written("100");
    (void)learn(&r, &TOO, 1, 50);
    assert_int_equal(W.m->status_written_ms, 50);
    assert_int_equal(W.m->progress.written_ms, 5000);
    assert_false(W.m->progress.write_dropped);
    W.m->progress.written_ms = 1;
    (void)learn(&r, &PLAN, 1, 50);
    assert_int_equal(W.m->progress.written_ms, 1);
    r.ok = r.status_written = false;
    (void)learn(&r, &SLOW, 1, 50);
    assert_int_equal(W.m->progress.written_ms, 1);
    assert_int_equal(W.m->progress.slow_reported_ms, 1);
}

static void refuse(int64_t generation, int64_t mono_ms)
{
    struct actions_result r = {.ok = false, .retry_after_ms = -1, .err.code = 403};

    r.problem = (struct plan_problem){PROBLEM_REFUSED, CHILD_POD, "j-node-0", "exceeded quota", 0};
    assert_true(learn(&r, &PLAN, generation, mono_ms));
}

static void test_problems_back_off(void **state)
{
    static const int64_t WANT_MS[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct actions_result good = {.ok = true};
    int64_t mono_ms = 1000000;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(WANT_MS); i++) {
        refuse(1, mono_ms);
        struct plan_problem p = jobmemory_problem(W.m, 1);
        assert_int_equal(p.kind, PROBLEM_REFUSED);
        assert_int_equal(p.retry_ms, mono_ms + WANT_MS[i]);
        assert_string_equal(p.message, "exceeded quota");
        mono_ms += WANT_MS[i];
    }
    assert_int_equal(jobmemory_problem(W.m, 2).kind, PROBLEM_NONE);
    (void)learn(&good, &PLAN, 1, mono_ms - 30000); /* a reconcile that only reported it */
    assert_int_equal(jobmemory_problem(W.m, 1).kind, PROBLEM_REFUSED);
    (void)learn(&good, &PLAN, 1, mono_ms); /* the one that tried again */
    assert_int_equal(jobmemory_problem(W.m, 1).kind, PROBLEM_NONE);
    refuse(1, mono_ms);
    assert_int_equal(jobmemory_problem(W.m, 1).retry_ms, mono_ms + 1000);
}

/* What happens to a create: how it ended, and whether it is reported then. */
struct create_row {
    enum problem_kind kind;
    int code, pods_created;
    int64_t took_ms, retry_after_ms;
    bool told;
    int64_t delay_ms; /* when reported */
};

static void play(const struct create_row *rows, size_t n)
{
    struct jobmemory *m = jobmemory_new();
    int64_t mono_ms = 1000000;

    for (size_t i = 0; i < n; i++) {
        const struct create_row *row = &rows[i];
        struct actions_result r = {.ok = row->kind == PROBLEM_NONE,
                                   .err.code = row->code,
                                   .pods_created = row->pods_created,
                                   .retry_after_ms = row->retry_after_ms ? row->retry_after_ms : -1};
        r.problem = (struct plan_problem){row->kind, CHILD_POD, "j-node-0", "words", 0};
        const struct jobmemory_pass pass = {&PLAN, "99", 1, row->took_ms};
        if (jobmemory_record(m, &W.watches, &r, &pass, 0, mono_ms) != row->told)
            fail_msg("row %zu: told is %d", i, !row->told);
        struct plan_problem p = jobmemory_problem(m, 1);
        if (row->told && (p.kind != row->kind || p.retry_ms != mono_ms + row->delay_ms))
            fail_msg("row %zu: kind %d, after %lld ms", i, p.kind, (long long)(p.retry_ms - mono_ms));
        mono_ms = p.retry_ms > mono_ms ? p.retry_ms : mono_ms;
    }
    jobmemory_free(m);
}

/* One quick failure: just tried again. From the second in a row, or at once when it took long, it is reported. */
static void test_a_failed_create(void **state)
{
    static const struct create_row TWICE[] = {
        {PROBLEM_FAILED, 500, 0, 10, 0, false, 0},      {PROBLEM_FAILED, 500, 0, 10, 0, true, 1000},
        {PROBLEM_FAILED, 500, 0, 10, 0, true, 2000},    {PROBLEM_FAILED, 503, 0, 10, 9000, true, 9000},
        {PROBLEM_FAILED, 503, 0, 10, 3000, true, 8000}, {PROBLEM_NONE, 0, 1, 10, 0, false, 0},
        {PROBLEM_FAILED, 500, 0, 10, 0, false, 0},
    };
    static const struct create_row SLOW[] = {
        {PROBLEM_FAILED, 0, 0, 1001, 0, true, 1000},
        {PROBLEM_REFUSED, 403, 0, 10, 0, true, 2000},
    };
    static const struct create_row PROGRESS[] = {
        {PROBLEM_FAILED, 500, 0, 10, 0, false, 0},   {PROBLEM_FAILED, 500, 3, 10, 0, false, 0},
        {PROBLEM_FAILED, 500, 3, 10, 0, false, 0},   {PROBLEM_FAILED, 500, 0, 10, 0, true, 1000},
        {PROBLEM_FAILED, 500, 0, 10, 0, true, 2000}, {PROBLEM_FAILED, 500, 2, 10, 0, true, 1000},
    };

    (void)state;
    play(TWICE, ARRAY_LEN(TWICE));
    play(SLOW, ARRAY_LEN(SLOW));
    play(PROGRESS, ARRAY_LEN(PROGRESS));
}

static const char *words_after(int code, const char *words, int64_t generation, int64_t mono_ms)
{
    struct actions_result r = {.ok = false, .retry_after_ms = -1, .err.code = code};

    r.problem = (struct plan_problem){PROBLEM_FAILED, CHILD_POD, "j-node-0", words, 0};
    (void)jobmemory_record(W.m, &W.watches, &r, &(struct jobmemory_pass){&PLAN, "99", generation, 2000}, 0,
                           mono_ms);
    return jobmemory_problem(W.m, generation).message;
}

/* It lasts while nothing is tried, since pods of an earlier attempt have to go first. */
static void test_a_problem_lasts_while_creates_wait(void **state)
{
    struct actions_result ok = {.ok = true, .retry_after_ms = -1};

    (void)state;
    assert_string_equal(words_after(400, "unknown field", 1, 0), "unknown field");
    (void)learn(&ok, &(const struct plan){.creates_wait = true}, 1, 90000);
    assert_int_equal(jobmemory_problem(W.m, 1).kind, PROBLEM_FAILED);
    (void)learn(&ok, &PLAN, 1, 90000);
    assert_int_equal(jobmemory_problem(W.m, 1).kind, PROBLEM_NONE);
}

/* Else each try would cost a write of the status. */
static void test_words_that_change_are_told_once(void **state)
{
    (void)state;
    assert_string_equal(words_after(500, "at 10:00", 1, 0), "at 10:00");
    assert_string_equal(words_after(500, "at 10:01", 1, 60000), "at 10:00");
    assert_string_equal(words_after(429, "slowly", 1, 61000), "slowly");
    assert_string_equal(words_after(429, "mended", 2, 62000), "mended");
    assert_string_equal(words_after(429, "later", 2, 661999), "mended");
    assert_string_equal(words_after(429, "later", 2, 662000), "later");
}

/* For an object that goes soon the operator waits in silence; one that does not go is reported. */
static void test_waiting_for_something_to_go(void **state)
{
    struct actions_result wait = {.wait = true, .retry_after_ms = -1};
    struct actions_result good = {.ok = true};

    (void)state;
    wait.problem = (struct plan_problem){PROBLEM_NAME_CONFLICT, CHILD_POD, "j-node-0", "still there", 0};
    for (int again = 0; again < 2; again++) {
        for (int i = 1; i < 60; i++)
            assert_false(learn(&wait, &PLAN, 1, i * 1000));
        assert_int_equal(jobmemory_problem(W.m, 1).kind, PROBLEM_NONE);
        assert_true(learn(&wait, &PLAN, 1, 60000));
        assert_int_equal(jobmemory_problem(W.m, 1).kind, PROBLEM_NAME_CONFLICT);
        (void)learn(&good, &PLAN, 1, 120000);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_own_writes_are_awaited),
        T(test_a_refused_version_is_in_doubt),
        T(test_a_cache_that_is_behind),
        T(test_a_pass_is_told_that_its_job_is_gone),
        T(test_a_status_that_does_not_stay),
        T(test_progress_keeps_its_own_time),
        T(test_problems_back_off),
        T(test_a_failed_create),
        T(test_a_problem_lasts_while_creates_wait),
        T(test_words_that_change_are_told_once),
        T(test_waiting_for_something_to_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
