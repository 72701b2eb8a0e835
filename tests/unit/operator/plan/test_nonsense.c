/* test_nonsense.c - a job with nonsense in any one field is planned without harm, whatever its pods did. */
#include "jsontext.h"
#include "operator/plan/plan.h"
#include "test.h"
#include "yamldoc.h"

#include <string.h>

/* Plan it new and with a pod that was killed; each status patch must name the version it was planned from. */
static void plan_any(void *ctx, const cJSON *spoiled)
{
    static const char KILLED[] =
        "{'metadata':{'namespace':'n','name':'torch-mnist-trainingjob-node-0','uid':'p','labels':{"
        "'" LABEL_TYPE "':'node'}},'spec':{'nodeName':'n0','containers':[{'name':'pytorch'}]},'status':{'"
        "phase':'Failed','containerStatuses':[{"
        "'name':'pytorch','state':{'terminated':{'exitCode':137,'reason':'Error'}}}]}}";
    cleanup_json cJSON *tree = jsontext_parse(KILLED);
    struct err err;
    struct pod *killed = pod_decode(tree, NULL, &err);
    const struct pod *pods[] = {killed};
    int *planned = ctx;

    struct trainjob *job = trainjob_decode(cJSON_Duplicate(spoiled, true), &err);
    for (int n = 0; job && n < 2; n++) {
        cleanup_arena struct arena a = {0};
        struct plan plan;
        const struct plan_input in = {.job = job,
                                      .pods = pods,
                                      .n_pods = n,
                                      .now_ms = 1767225600000,
                                      .tensorboard_image = "tb",
                                      .launcher_image = "launcher",
                                      .guards = {true, "ops", NULL, "k"}};
        plan_trainjob(&in, &a, &plan);
        for (int i = 0; i < plan.n_actions; i++) {
            const struct action *act = &plan.actions[i];
            if (act->kind != ACTION_STATUS)
                continue;
            assert_int_equal(i, 0);
            assert_non_null(strstr(act->body, "\"resourceVersion\""));
        }
        ++*planned;
    }
    trainjob_free(job);
    free(killed);
}

static void test_every_place(void **state)
{
    struct err err;
    int planned = 0;
    cleanup_json cJSON *job = yamldoc_job(TK_SOURCE_DIR "/tests/golden/tutorial/job.yaml", &err);

    (void)state;
    assert_non_null(job);
    int shown = yamldoc_spoil(job, plan_any, &planned);
    assert_true(shown > 500 && planned > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_place)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
