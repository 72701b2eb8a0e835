/* test_newjob.c - which jobs get pods before their first status, and what may wait while requests wait for each other. */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define JOB LAB_SPEC("'torchrunConfig':{'enabled':true},", "4")
#define PLAIN_JOB LAB_SPEC("", "4")

/* The place in the log of the first such request; -1: there is none. */
static int first(struct lab *l, const char *method, const char *path_part)
{
    struct fake_request r;

    for (int i = 0; fake_log_at(l->server, i, &r); i++)
        if (strcmp(r.method, method) == 0 && strstr(r.path, path_part))
            return i;
    return -1;
}

static bool pods_came_first(struct lab *l)
{
    assert_true(first(l, "POST", "/services") < first(l, "POST", "/pods"));
    return first(l, "POST", "/pods") < first(l, "PATCH", "/j/status");
}

static bool has_4_pods(struct lab *l)
{
    return fake_count(l->server, LAB_PODS) == 4;
}

static void start_and_succeed(const char *job)
{
    struct lab l;

    lab_start_direct(&l, lab_well, 1);
    lab_until(&l, lab_settled);
    lab_put(&l, LAB_JOB, job);
    lab_until_status(&l, "phase", "Succeeded");
    assert_true(pods_came_first(&l));
    assert_in_range(fake_log_count(l.server, "PATCH", "/j/status"), 1, 2);
    assert_int_equal(fake_log_count(l.server, "GET", NULL), 0);
    lab_stop(&l);
}

static void test_pods_come_first(void **state)
{
    (void)state;
    start_and_succeed(JOB);
    start_and_succeed(PLAIN_JOB); /* its other pods wait for pod 0, and cost no status more */
}

/* Without torchrun the others come when pod 0 has had no address for ten seconds. */
static void test_others_wait_for_pod_0(void **state)
{
    struct lab *l = lab_begin(state, lab_pending);

    lab_until(l, lab_settled);
    lab_put(l, LAB_JOB, PLAIN_JOB);
    int64_t first_ms = lab_until_status(l, "phase", "Pending");
    assert_int_equal(fake_count(l->server, LAB_PODS), 1);
    assert_in_range(first_ms + lab_until(l, has_4_pods), 9000, 12000);
    lab_until(l, lab_settled);
    assert_int_equal(fake_log_count(l->server, "PATCH", "/j/status"), 2);
}

/* It reports that its pods do not start, a little later than usual. */
static void test_pods_that_do_not_start(void **state)
{
    struct lab *l = lab_begin(state, lab_pending);

    lab_until(l, lab_settled);
    lab_put(l, LAB_JOB, JOB);
    assert_in_range(lab_until_status(l, "phase", "Pending"), 0, 2000);
    assert_true(pods_came_first(l));
}

/* Its status would be in the list that begins a term: whoever waited has none. */
static void test_a_job_from_before(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_run(l, JOB);
    assert_true(pods_came_first(l));
}

/* A status at all, be it a reason alone, and nobody knows what was counted. */
static void test_a_status_of_others(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_put(l, LAB_JOB, JOB);
    lab_put(l, LAB_JOB, "{'status':{'reason':'Unreadable'}}");
    lab_until_status(l, "phase", "Running");
    assert_false(pods_came_first(l));
}

/* Nobody knows what became of a create: the next pass begins with a status. */
static void test_not_after_a_lost_answer(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_strike(l->server, "POST", "/services", FAKE_DROP_BEFORE);
    lab_run(l, JOB);
    assert_false(pods_came_first(l));
}

/* Not served, say: no key is worked on. Deployments are TensorBoard's alone. */
static void test_nothing_before_the_lists(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_refuse(l->server, "LIST", "/services", 500);
    lab_put(l, LAB_JOB, JOB);
    lab_pass_ms(l, 120000);
    assert_int_equal(lab_counts(l).passes, 0);
    fake_refuse(l->server, "LIST", "/deployments", 403);
    lab_until_status(l, "phase", "Running");
}

#define TENSORBOARD(suspend)                                                                                 \
    "{'spec':{'tensorboardSpec':{'suspend':" suspend ",'logDir':{'pvc':[{'name':'p'}]}}}}"

static int tensorboards(struct lab *l)
{
    cleanup_json cJSON *d = lab_get(l, LAB_DEPLOYMENTS "/j-tensorboard");

    return (int)json_i64(json_child(d, "spec"), "replicas", -1);
}

static bool shows_logs(struct lab *l)
{
    return tensorboards(l) == 1;
}

static bool board_says(struct lab *l, const char *reason)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *got = json_str(json_find(job, (const char *[]){"status", "tensorboard", NULL}), "reason");

    return got && strcmp(got, reason) == 0;
}

/* The job runs without its TensorBoard and its status reports it; it is not planned again and again for it. */
static void test_deployments_that_cannot_be_listed(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_refuse(l->server, "LIST", "/deployments", 403);
    lab_put(l, LAB_JOB, JOB);
    lab_put(l, LAB_JOB, TENSORBOARD("false"));
    lab_until_status(l, "phase", "Running");
    uint64_t before = lab_counts(l).passes;
    lab_pass_ms(l, 600000);
    assert_in_range(lab_counts(l).passes - before, 9, 20); /* two of them for that status */
    assert_true(board_says(l, "NotListed"));
    fake_plan_fault(l->server, NULL);
    assert_in_range(lab_until(l, shows_logs), 0,
                    75000); /* a list that fails is tried again after a minute at most */
}

/* With --tensorboard=false the role needs no Deployments: they are not requested, and the status reports it. With the switch on again
 * the job gets its TensorBoard. */
static void test_no_tensorboards(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    l->no_boards = true;
    lab_crash(l);
    int before = fake_log_count(l->server, "LIST", "/deployments");
    fake_refuse(l->server, "LIST", "/deployments", 403);
    lab_put(l, LAB_JOB, JOB);
    lab_put(l, LAB_JOB, TENSORBOARD("false"));
    lab_until_status(l, "phase", "Running");
    LAB_UNTIL(l, lab_settled(l));
    assert_true(board_says(l, "Disabled"));
    assert_int_equal(fake_log_count(l->server, "LIST", "/deployments"), before);
    assert_int_equal(fake_log_count(l->server, "POST", "/services"), 1);
    fake_plan_fault(l->server, NULL);
    l->no_boards = false;
    lab_crash(l);
    lab_until(l, shows_logs);
}

/* The watch of Deployments is up and sends nothing: what was written there is looked for in a list, and training continues. */
static void test_deployments_that_are_behind(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_put(l, LAB_JOB, JOB);
    lab_put(l, LAB_JOB, TENSORBOARD("false"));
    lab_until(l, shows_logs);
    lab_until(l, lab_settled);
    int before = fake_log_count(l->server, "LIST", "/deployments");
    fake_freeze(l->server, "deployments", 0);
    lab_put(l, LAB_JOB, TENSORBOARD("true"));
    LAB_UNTIL(l, tensorboards(l) == 0);
    lab_put(l, LAB_JOB, TENSORBOARD("false"));
    assert_true(fake_delete(l->server, LAB_PODS "/j-node-1"));
    assert_in_range(lab_until(l, shows_logs), 0, 180000);
    assert_true(lab_status_is(l, LAB_JOB, "phase", "Running"));
    assert_int_equal(l->n_pods, 8);
    assert_in_range(fake_log_count(l->server, "LIST", "/deployments") - before, 1, 2);
}

/* The watch of pods sends nothing: a list is requested after five seconds, and another one not within a minute after it. */
static void test_lists_are_a_minute_apart(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    fake_freeze(l->server, "pods", 0);
    lab_put(l, LAB_JOB, JOB);
    LAB_UNTIL(l, fake_log_count(l->server, "LIST", "/pods") >= 2);
    assert_in_range(l->offset_ms, 5000, 9000);
    int64_t from_ms = l->offset_ms;
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    LAB_UNTIL(l, fake_log_count(l->server, "LIST", "/pods") >= 3);
    assert_in_range(l->offset_ms - from_ms, 59000, 80000);
}

static bool is_made(struct lab *l)
{
    return fake_log_count(l->server, "POST", "/pods") == 4;
}

/* The status that knows the pods is written, and the cache of jobs never shows it: what went meanwhile is not made again by one
 * who believes an older status, or that there is none. */
static void never_again(enum fake_fault fault, bool has_status)
{
    struct lab l;

    lab_start_direct(&l, lab_pending, 1);
    lab_until(&l, lab_settled);
    lab_put(&l, LAB_JOB, JOB);
    if (has_status)
        lab_put(&l, LAB_JOB, "{'status':{'reason':'Unreadable'}}");
    lab_until(&l, is_made);
    assert_int_equal(fake_log_count(l.server, "PATCH", "/j/status"), has_status);
    fake_freeze(l.server, TRAINJOB_PLURAL, 0);
    fake_strike(l.server, "PATCH", "/j/status", fault);
    lab_until(&l, lab_struck);
    fake_refuse(l.server, "LIST", "/" TRAINJOB_PLURAL, 500);
    for (int i = fake_count(l.server, LAB_PODS); i > 0; i--) {
        cleanup_json cJSON *pod = fake_nth_json(l.server, LAB_PODS, 0);
        char path[160];
        snprintf(path, sizeof(path), LAB_PODS "/%s", json_meta(pod, "name"));
        assert_true(fake_remove(l.server, path));
    }
    lab_pass_ms(&l, 150000);
    assert_true(is_made(&l));
    fake_plan_fault(l.server, NULL);
    fake_freeze(l.server, NULL, 0);
    lab_pass_ms(&l, 150000);
    assert_true(fake_log_count(l.server, "POST", "/pods") >= 8);
    lab_stop(&l);
}

static void test_never_from_an_older_cache(void **state)
{
    (void)state;
    never_again(FAKE_NOTHING, false);
    never_again(FAKE_NOTHING, true);
    never_again(FAKE_DROP_AFTER, false); /* nor when nobody heard that it was written */
    never_again(FAKE_DROP_AFTER, true);
}

/* Pods are created while slots are taken; requests that only report wait, five seconds at most. */
static void test_what_tells_may_wait(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    lab_until(l, lab_settled);
    fake_direct_fill(l->operators[0].direct, true);
    lab_put(l, LAB_JOB, JOB);
    int64_t from_ms = l->offset_ms;
    LAB_UNTIL(l, first(l, "PATCH", "/j/status") >= 0);
    assert_in_range(l->offset_ms - from_ms, 5000, 7000);
    assert_true(lab_status_is(l, LAB_JOB, "phase", "Running"));
    assert_int_equal(fake_log_count(l->server, "POST", "/pods"), 4);
    assert_int_equal(fake_log_count(l->server, "PATCH", "/j/status"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_come_first),
        LAB_TEST(test_pods_that_do_not_start),
        LAB_TEST(test_a_job_from_before),
        LAB_TEST(test_a_status_of_others),
        LAB_TEST(test_not_after_a_lost_answer),
        LAB_TEST(test_nothing_before_the_lists),
        cmocka_unit_test(test_never_from_an_older_cache),
        LAB_TEST(test_what_tells_may_wait),
        LAB_TEST(test_others_wait_for_pod_0),
        LAB_TEST(test_deployments_that_are_behind),
        LAB_TEST(test_lists_are_a_minute_apart),
        LAB_TEST(test_deployments_that_cannot_be_listed),
        LAB_TEST(test_no_tensorboards),
    };

    json_memory_must();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
