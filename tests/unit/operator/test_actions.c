/* test_actions.c - what is begun when, over a transport that answers when the test says so. */
#include "actionbench.h"
#include "test.h"

#include <string.h>

static void test_pods_beside_each_other(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    assert_int_equal(bench_n_open(), 1); /* the Service, alone */
    bench_created(0);
    assert_int_equal(bench_n_open(), 1); /* the first pod, alone */
    bench_created(1);
    assert_int_equal(bench_n_open(), 2);
    bench_created(3); /* in any order */
    assert_int_equal(bench_n_open(), 3);
    for (int i = 4; i < 12; i++)
        bench_created(i);
    assert_int_equal(bench_n_open(), 8); /* and no more */
    bench_created(2);
    for (int i = 12; i < BENCH_PODS; i++)
        bench_created(i);
    assert_int_equal(bench_count("/pods"), BENCH_PODS);
    assert_int_equal(bench_count("/events"), 0); /* one pod is still under way */
    assert_int_equal(B.n_done, 0);
    bench_created(BENCH_PODS);
    assert_int_equal(bench_count("/events"), 1);
    assert_int_equal(B.n_done, 1);
    assert_true(B.result.ok);
    assert_int_equal(B.result.pods_created, BENCH_PODS);
    assert_string_equal(B.result.versions[CHILD_SERVICE], "100");
    assert_string_equal(B.result.versions[CHILD_POD], "120"); /* the highest */
}

static void test_a_failure_begins_nothing_more(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    for (int i = 0; i < 4; i++)
        bench_created(i);
    assert_int_equal(bench_n_open(), 4);
    int before = B.n;
    bench_answer(5, 503, "{}");
    bench_answer(7, 500, "{}");
    bench_created(4); /* what went well counts, and is awaited in the cache */
    assert_int_equal(B.n, before);
    assert_int_equal(B.n_done, 0);
    bench_created(6);
    assert_int_equal(B.n_done, 1);
    assert_false(B.result.ok);
    assert_non_null(strstr(B.result.err.msg, "503")); /* the first one */
    assert_int_equal(B.result.pods_created, 5);
    assert_string_equal(B.result.versions[CHILD_POD], "106");
    assert_true(B.result.lost);
    assert_int_equal(bench_count("/events"), 0);
}

static void add_guarded(void)
{
    bench_fresh();
    bench_add(ACTION_CREATE, CHILD_POLICY, "j-u");
    bench_add(ACTION_CREATE, CHILD_KEY, "j-u");
    bench_add(ACTION_CREATE, CHILD_SERVICE, "j-rdzv");
    bench_add(ACTION_CREATE, CHILD_POD, "j-node-0");
    bench_run(NULL);
    assert_int_equal(bench_n_open(), 3); /* beside each other, and no pod yet */
}

/* That the name of a guard is taken means that it is there. Nothing is read, and nothing has to be seen. */
static void test_guards_come_before_the_pods(void **state)
{
    (void)state;
    add_guarded();
    bench_answer(1, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    bench_created(2);
    assert_int_equal(B.n, 3);
    bench_created(0);
    assert_int_equal(B.n, 4);
    bench_created(3);
    assert_int_equal(B.n_done, 1);
    assert_true(B.result.ok);
    assert_int_equal(B.result.guards, 2);
    assert_int_equal(B.result.pods_created, 1);
    assert_false(B.result.unseen);
}

/* Of a later attempt, whose Service is there. */
static void test_pods_wait_for_the_last_guard(void **state)
{
    (void)state;
    bench_fresh();
    bench_add(ACTION_CREATE, CHILD_POLICY, "j-u");
    bench_add(ACTION_CREATE, CHILD_KEY, "j-u");
    bench_add(ACTION_CREATE, CHILD_POD, "j-node-0");
    bench_run(NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(B.n, 2);
        bench_answer(i, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    }
    assert_int_equal(bench_count("/pods"), 1);
}

static void test_without_its_guards_there_is_no_pod(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        add_guarded();
        bench_answer(i, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}");
        bench_created(2);
        bench_created(1 - i);
        assert_int_equal(B.n, 3);
        assert_int_equal(B.n_done, 1);
        assert_int_equal(B.result.guards, 1);
        assert_int_equal(B.result.problem.kind, PROBLEM_REFUSED);
        assert_int_equal(B.result.problem.child, i == 0 ? CHILD_POLICY : CHILD_KEY);
    }
}

/* A quota may have room for pods of the first replicaSpec and none for those of the second. */
static void test_the_first_pod_of_each_spec_goes_alone(void **state)
{
    (void)state;
    bench_fresh();
    for (int i = 0; i < 8; i++)
        bench_add(ACTION_CREATE, CHILD_POD, i < 4 ? "node" : "worker");
    B.actions[0].first = B.actions[4].first = true;
    bench_run(NULL);
    assert_int_equal(B.n, 1);
    bench_created(0);
    bench_created(1);
    bench_created(2);
    assert_int_equal(B.n, 4);
    bench_created(3);
    assert_int_equal(B.n, 5);
    assert_int_equal(bench_n_open(), 1);
    bench_answer(4, 500, "{}");
    assert_int_equal(B.n, 5);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.pods_created, 4);
}

/* Another pod of the first spec never goes beside the first of the second one. */
static void test_after_the_first_of_a_spec_one_more_at_a_time(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    B.actions[5].first = true; /* the fifth pod */
    for (int i = 0; i < 5; i++)
        bench_created(i);
    assert_int_equal(bench_n_open(), 1);
    bench_created(5);
    assert_int_equal(bench_n_open(), 2);
    bench_created(6);
    assert_int_equal(bench_n_open(), 3);
}

/* Those of an attempt go beside each other; what comes behind them waits for the last. */
static void test_deletes_beside_each_other(void **state)
{
    (void)state;
    bench_fresh();
    for (int i = 0; i < 12; i++) {
        bench_add(ACTION_DELETE, CHILD_POD, "pod");
        B.actions[i].uid = "u";
    }
    bench_add(ACTION_CREATE, CHILD_POD, "pod");
    bench_run(NULL);
    assert_int_equal(B.n, 8);
    for (int i = 0; i < 11; i++)
        bench_answer(i, 200, "{}");
    assert_int_equal(B.n, 12);
    bench_answer(11, 200, "{}");
    assert_int_equal(B.n, 13);
    bench_created(12);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.pods_deleted, 12);
}

static bool is_few(void *ctx)
{
    (void)ctx;
    return B.n < 4;
}

/* The job is gone: what is under way ends, and nothing is sent any more, not even to look at what has a name. */
static void test_nothing_more_is_sent(void **state)
{
    (void)state;
    bench_prepare(BENCH_PODS);
    bench_run(is_few);
    for (int i = 0; i < 3; i++)
        bench_created(i);
    assert_int_equal(B.n, 4);
    bench_answer(3, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    assert_int_equal(B.n, 4);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.pods_created, 2);
}

/* Events go behind what makes jobs run. */
static void test_what_can_wait(void **state)
{
    (void)state;
    bench_begin(1);
    B.actions[3] = (struct action){.kind = ACTION_STATUS, .child = CHILD_JOB, .name = "job", .body = "{}"};
    B.plan.n_actions = 4;
    for (int i = 0; i < 2; i++)
        bench_created(i);
    assert_int_equal(B.n, 4);
    for (int i = 0; i < B.n; i++) {
        assert_string_equal(B.calls[i].ns, "ns");
        assert_int_equal(B.calls[i].later, strstr(B.calls[i].path, "/events") != NULL);
    }
    assert_int_equal(bench_count("/events"), 1);
}

static void test_cancel(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    for (int i = 0; i < 5; i++)
        bench_created(i);
    int under_way = bench_n_open();
    assert_in_range(under_way, 2, 8);
    actions_cancel(TAKE(B.run));
    assert_int_equal(B.cancelled, under_way);
    assert_int_equal(B.n_done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_beside_each_other),
        cmocka_unit_test(test_a_failure_begins_nothing_more),
        cmocka_unit_test(test_guards_come_before_the_pods),
        cmocka_unit_test(test_pods_wait_for_the_last_guard),
        cmocka_unit_test(test_without_its_guards_there_is_no_pod),
        cmocka_unit_test(test_the_first_pod_of_each_spec_goes_alone),
        cmocka_unit_test(test_after_the_first_of_a_spec_one_more_at_a_time),
        cmocka_unit_test(test_deletes_beside_each_other),
        cmocka_unit_test(test_nothing_more_is_sent),
        cmocka_unit_test(test_what_can_wait),
        cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests(tests, NULL, bench_end);
}
