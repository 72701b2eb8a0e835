/* test_fairness.c - namespaces whose API server's webhook does not answer, and a job in another one. */
#include "lab.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { NAMESPACES = 8, JOBS_EACH = 30 };

static void put_job(struct lab *l, const char *ns, const char *name)
{
    char path[160];

    snprintf(path, sizeof(path), "/apis/%s/namespaces/%s/%s/%s", TRAINJOB_API_VERSION, ns, TRAINJOB_PLURAL,
             name);
    assert_true(fake_put(l->server, path, LAB_TWO));
}

static bool all_are_slow(struct lab *l)
{
    return fake_faults_done(l->server) >= NAMESPACES * HTTP_SLOW_SHARE_MAX;
}

/* A request that hangs ends after 30 s of the machine's time. */
static bool any_gave_up(struct lab *l)
{
    size_t n = 0;
    const struct http_count *counts = http_counts(l->operators[0].http, &n);

    for (size_t i = 0; i < n; i++)
        if (counts[i].status == 0)
            return true;
    return false;
}

/* More jobs than there are works and requests, in eight namespaces where no create is ever answered. */
static void test_eight_namespaces_that_do_not_answer(void **state)
{
    struct lab l;
    char ns[16];
    char name[16];

    (void)state;
    lab_start(&l, lab_well);
    fake_plan_fault(l.server, &(struct fake_fault_plan){
                                  .method = "POST", .path_part = "/slow-", .fault = FAKE_HANG_BEFORE});
    for (int i = 0; i < NAMESPACES * JOBS_EACH; i++) {
        snprintf(ns, sizeof(ns), "slow-%d", i / JOBS_EACH);
        snprintf(name, sizeof(name), "j-%d", i % JOBS_EACH);
        put_job(&l, ns, name);
    }
    lab_until(&l, all_are_slow);
    put_job(&l, "ns", "j");
    lab_until_status(&l, "phase", "Succeeded");
    assert_false(any_gave_up(&l));
    fake_plan_fault(l.server, NULL);
    lab_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_namespaces_that_do_not_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
