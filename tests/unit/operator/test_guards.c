/* test_guards.c - the NetworkPolicy and the key of a job in a cluster: how often they are requested, and what a refusal and a new
 * operator change. */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define TORCHRUN(replicas) LAB_SPEC("'torchrunConfig':{'enabled':true},", replicas)

static int killed_once(int attempt, int index)
{
    return attempt > 0 ? 0 : index == 1 ? 137 : LAB_RUNS;
}

static void crash_as(struct lab *l, bool unguarded)
{
    l->unguarded = unguarded;
    lab_crash(l);
}

static int sent(struct lab *l, const char *kind)
{
    return fake_log_count(l->server, "POST", kind);
}

static void run_to(struct lab *l, const char *job, const char *phase)
{
    l->collects = true;
    lab_until(l, lab_settled);
    lab_put(l, LAB_JOB, job);
    lab_until_status(l, "phase", phase);
}

/* Both once for each attempt; the second time they exist, and there is no other request. */
static void test_once_an_attempt(void **state)
{
    struct lab *l = lab_begin(state, killed_once);

    run_to(l, TORCHRUN("2"), "Succeeded");
    assert_int_equal(sent(l, LAB_POLICIES), 2);
    assert_int_equal(sent(l, LAB_SECRETS), 2);
    assert_int_equal(fake_count(l->server, LAB_POLICIES), 1);
    assert_int_equal(fake_count(l->server, LAB_SECRETS), 1);
    assert_int_equal(fake_log_count(l->server, "GET", LAB_POLICIES), 0);
    assert_int_equal(fake_log_count(l->server, "GET", LAB_SECRETS), 0);
    assert_int_equal(sent(l, LAB_PODS), 4);
    assert_true(fake_delete(l->server, LAB_JOB));
    lab_until(l, lab_settled);
    assert_int_equal(fake_count(l->server, LAB_POLICIES) + fake_count(l->server, LAB_SECRETS), 0);
}

static void test_one_pod_has_no_key(void **state)
{
    struct lab *l = lab_begin(state, lab_well);

    run_to(l, TORCHRUN("1"), "Succeeded");
    assert_int_equal(sent(l, LAB_POLICIES), 1);
    assert_int_equal(sent(l, LAB_SECRETS), 0);
}

/* By an older role, or a quota: while they are refused there is no pod, and the server's message shows why; then the job continues by
 * itself. */
static void test_refused(void **state)
{
    static const struct {
        const char *path, *words;
    } ROWS[] = {
        {"/networkpolicies", "networkpolicies.networking.k8s.io is forbidden: User o cannot create resource"},
        {"/secrets", "secrets j-u is forbidden: exceeded quota: few, requested: count/secrets=1"},
    };

    for (int i = 0; i < 2; i++) {
        struct lab *l = lab_begin(state, lab_well);
        const struct fake_fault_plan no_right = {.method = "POST",
                                                 .path_part = ROWS[i].path,
                                                 .fault = FAKE_STATUS,
                                                 .status = 403,
                                                 .message = ROWS[i].words};
        fake_plan_fault(l->server, &no_right);
        run_to(l, TORCHRUN("2"), "Pending");
        lab_until_status(l, "reason", "PodRefused");
        lab_pass_ms(l, 10000);
        lab_until(l, lab_settled);
        assert_true(lab_events(l, "PodRefused", ROWS[i].words) > 0);
        assert_int_equal(fake_count(l->server, LAB_PODS), 0);
        fake_plan_fault(l->server, NULL);
        lab_until_status(l, "phase", "Succeeded");
        if (i == 0)
            (void)lab_end(state);
    }
}

/* A new leader knows nothing of them: it sends the create once more for an attempt that has no pods, and not for one that has. */
static void test_a_new_operator(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    run_to(l, TORCHRUN("2"), "Running");
    lab_crash(l);
    lab_until(l, lab_settled);
    assert_int_equal(sent(l, LAB_POLICIES), 1);
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_until_status(l, "phase", "Paused");
    lab_put(l, LAB_JOB, "{'spec':{'suspend':false}}");
    lab_until_status(l, "phase", "Running");
    assert_int_equal(sent(l, LAB_POLICIES), 2);
    assert_int_equal(sent(l, LAB_SECRETS), 2);
}

static bool pods_say(struct lab *l, const char *text)
{
    int n = 0;

    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof(path), LAB_PODS "/j-node-%d", i);
        cleanup_json cJSON *pod = lab_get(l, path);
        char *json = cJSON_PrintUnformatted(pod);
        n += json && strstr(json, text);
        cJSON_free(json);
    }
    assert_int_not_equal(n, 1);
    return n == 2;
}

/* What an operator without guards began continues as it is; the next attempt has both. Back again, the one after that has none. */
static void test_an_upgrade_and_back(void **state)
{
    struct lab *l = lab_begin(state, lab_forever);

    crash_as(l, true);
    run_to(l, TORCHRUN("2"), "Running");
    crash_as(l, false);
    lab_until(l, lab_settled);
    assert_int_equal(sent(l, LAB_PODS), 2);
    assert_int_equal(sent(l, LAB_POLICIES) + sent(l, LAB_SECRETS), 0);
    assert_false(pods_say(l, "secretKeyRef"));
    lab_pause(l);
    lab_resume(l);
    assert_true(pods_say(l, "secretKeyRef") && pods_say(l, "batch.tensorstack.dev/isolated"));
    assert_int_equal(fake_count(l->server, LAB_POLICIES) + fake_count(l->server, LAB_SECRETS), 2);
    crash_as(l, true);
    lab_pause(l);
    lab_resume(l);
    assert_false(pods_say(l, "secretKeyRef") || pods_say(l, "batch.tensorstack.dev/isolated"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_once_an_attempt), LAB_TEST(test_one_pod_has_no_key),  LAB_TEST(test_refused),
        LAB_TEST(test_a_new_operator),  LAB_TEST(test_an_upgrade_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
