/* test_queue_edges.c - a job in a queue of Kueue: what happens between its usual stages, or is refused, or seldom there. */
#include "common/text.h"
#include "operator/api/workload.h"
#include "queuelab.h"

#include <stdio.h>
#include <string.h>

/* The API server may not know Kueue's kinds yet when the operator starts. */
static void test_missing_at_the_start(void **state)
{
    struct lab *l = begin(state, lab_forever);

    l->queues.full = true;
    lab_put(l, LAB_JOB, QUEUED("", "2"));
    LAB_UNTIL(l, has_reason(l, "Queued insufficient"));
    fake_plan_fault(
        l->server, &(struct fake_fault_plan){
                       .request = 1, .method = "LIST", .path_part = "kueue.x-k8s.io/v1beta2", .status = 404});
    lab_restart(l);
    lab_pass_ms(l, 80000);
    assert_true(lab_struck(l));
    assert_int_equal(asked(l, "POST", LAB_PODS), 0);
    assert_true(has_reason(l, "Queued insufficient"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAB_TEST(test_missing_at_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
