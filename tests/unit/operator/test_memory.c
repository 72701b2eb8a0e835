/* test_memory.c - out of memory at each allocation in turn: reading a job and its pod, and planning it, either ends the
 * process, as common/memory.h promises, or comes to the very same plan. Never to half a one.
 *
 * Each try is a process of its own; its n-th allocation fails (failing.h).
 */
#include "failing.h"
#include "jsontext.h"
#include "operator/plan/plan.h"
#include "test.h"
#include "yamldoc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_ALLOCATIONS = 300, TEXT_BYTES = 1 << 16 };

struct material {
    const char *job, *pod; /* JSON */
};

/* A hash of the whole plan; -1 where reading failed. */
static int64_t plan_hash(void *ctx)
{
    const struct material *m = ctx;
    cleanup_arena struct arena a = {0};
    struct err err;
    struct plan plan;
    uint64_t hash = 0;

    failing_begin();
    cJSON *tree = json_parse(m->job, strlen(m->job), &err);
    cleanup_json cJSON *pod_tree = json_parse(m->pod, strlen(m->pod), &err);
    cleanup_trainjob struct trainjob *job = tree ? trainjob_decode(tree, &err) : NULL;
    struct pod *pod = pod_tree ? pod_decode(pod_tree, NULL, &err) : NULL;
    if (!job || !pod)
        return -1;
    const struct pod *pods[] = {pod};
    plan_trainjob(&(struct plan_input){.job = job,
                                       .pods = pods,
                                       .n_pods = 1,
                                       .now_ms = 1767225600000,
                                       .tensorboard_image = "tb",
                                       .launcher_image = "launcher"},
                  &a, &plan);
    for (int i = 0; i < plan.n_actions; i++) {
        const struct action *act = &plan.actions[i];
        const char *const texts[] = {act->name, act->uid, act->body, act->reason, act->message};
        for (size_t k = 0; k < ARRAY_LEN(texts); k++)
            for (const char *p = texts[k]; p && *p; p++)
                hash = hash * 31 + (unsigned char)*p;
        hash = hash * 31 + (uint64_t)act->kind;
    }
    free(pod);
    return (int64_t)(hash >> 1);
}

static void sweep(struct material m)
{
    const int64_t want = plan_hash(&m);
    struct failing_end end = {.struck = true};
    long n = 0, exhausted = 0;

    assert_true(want >= 0);
    while (end.struck) {
        failing_try(++n, plan_hash, &m, &end);
        exhausted += end.exhausted;
        if (!end.exhausted && end.value != want)
            fail_msg("without allocation %ld it is another plan", n);
    }
    printf("%ld allocations, %ld of them cannot be done without\n", n - 1, exhausted);
    assert_true(n > FEWEST_ALLOCATIONS && exhausted > FEWEST_ALLOCATIONS);
}

static void test_each_allocation(void **state)
{
    static const char POD[] =
        "{'metadata':{'namespace':'n','name':'torch-mnist-trainingjob-node-0','uid':'p','labels':{"
        "'" LABEL_TYPE "':'node','" LABEL_INDEX "':'0','" LABEL_ATTEMPT
        "':'0'},'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
        "','uid':'u','controller':true}]},'status':{'phase':'Failed','containerStatuses':[{'name':'pytorch','"
        "state':{'terminated':{'exitCode':137,'reason':'OOMKilled'}}}]}}";
    static char old[TEXT_BYTES], fresh[TEXT_BYTES];
    cleanup_arena struct arena a = {0};
    cleanup_free char *pod = jsontext(POD);
    struct err err;
    cleanup_json cJSON *job = yamldoc_job(TK_SOURCE_DIR "/tests/golden/tutorial/job.yaml", &err);

    (void)state;
    json_memory_must();
    snprintf(fresh, sizeof(fresh), "%s", json_print(job, &a));
    cJSON *status = cJSON_AddObjectToObject(job, "status");
    cJSON_AddStringToObject(status, "phase", "Running");
    snprintf(old, sizeof(old), "%s", json_print(job, &a));
    sweep((struct material){fresh, pod});
    sweep((struct material){old, pod});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};

    const int skip = failing_skip();

    return skip ? skip : cmocka_run_group_tests(tests, NULL, NULL);
}
