/* test_many.c - the largest job: its pods are made in portions, and its status still fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/plan/plan.h"

#include <stdio.h>
#include <string.h>

#define JOB                                                                                                  \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{"  \
    "\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":1024,\"template\":{\"spec\":{\"containers\":[{"       \
    "\"name\":\"c\"}]}}}]}}"

enum { PODS = 1024, PORTION = 250 };

/* The pods that are there already; names as they are made. */
static const struct pod *const *pods_there(int n, struct arena *a)
{
    const struct pod **list = arena_array(a, (size_t)n + 1, const struct pod *);

    for (int i = 0; i < n; i++) {
        struct pod *p = arena_new(a, struct pod);
        *p = (struct pod){.ns = "n", .owner_uid = "u", .type = "node", .hash = "", .node = "n0", .index = i};
        p->name = arena_printf(a, "j-node-%d", i);
        p->uid = arena_printf(a, "uid-%d", i);
        p->reason = p->message = p->disruption = p->disruption_msg = p->unschedulable = "";
        p->training = (struct pod_container){"c", "", "", CONTAINER_RUNNING, 0, 0, 0};
        p->init = (struct pod_container){"", "", "", CONTAINER_NONE, 0, 0, 0};
        p->phase = POD_RUNNING;
        list[i] = p;
    }
    return list;
}

static void check(struct trainjob *job, int there, int want)
{
    cleanup_arena struct arena a = {0};
    const struct plan_input in = {.job = job,
                                  .pods = pods_there(there, &a),
                                  .n_pods = there,
                                  .now_ms = 1767225600000,
                                  .tensorboard_image = "tb"};
    struct plan plan;
    int created = 0;

    plan_trainjob(&in, &a, &plan);
    for (int i = 0; i < plan.n_actions; i++) {
        const struct action *act = &plan.actions[i];
        created += act->kind == ACTION_CREATE && act->child == CHILD_POD;
        if (act->kind == ACTION_STATUS)
            assert_true(strlen(act->body) < 400000); /* etcd takes 1.5 MiB; each pod has some 150 bytes */
    }
    assert_int_equal(created, want);
    assert_int_equal(plan.requeue_ms, there + want < PODS ? in.now_ms : 0); /* the rest at once */
}

static void test_pods_come_in_portions(void **state)
{
    struct err err;
    cleanup_trainjob struct trainjob *job = trainjob_decode(json_parse(JOB, strlen(JOB), &err), &err);

    (void)state;
    assert_non_null(job);
    assert_null(job->spec_error);
    check(job, 0, PORTION);
    check(job, PORTION, PORTION);
    check(job, PODS - PORTION - 1, PORTION);
    check(job, PODS - PORTION, PORTION);
    check(job, PODS - 3, 3);
    check(job, PODS, 0);
}

/* A template may be as large as an object of etcd. A pass holds the bodies of all that it creates: it must not be the end of an
 * operator with 128 MiB that other jobs need as well. */
static void test_large_pods_come_in_small_portions(void **state)
{
    enum { NOTE_BYTES = 200000, PASS_BYTES = 4 << 20 };
    cleanup_arena struct arena a = {0};
    struct plan plan;
    struct err err;
    cJSON *tree = json_parse(JOB, strlen(JOB), &err);
    cJSON *specs = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "spec"), "replicaSpecs");
    cJSON *template = cJSON_GetObjectItem(specs->child, "template");
    char *note = arena_alloc(&a, NOTE_BYTES + 1);
    size_t bytes = 0;
    int created = 0;

    (void)state;
    memset(note, 'x', NOTE_BYTES);
    cJSON *meta = cJSON_AddObjectToObject(template, "metadata");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "annotations"), "note", note);
    cleanup_trainjob struct trainjob *job = trainjob_decode(tree, &err);
    const struct plan_input in = {.job = job, .now_ms = 1767225600000, .tensorboard_image = "tb"};
    plan_trainjob(&in, &a, &plan);
    for (int i = 0; i < plan.n_actions; i++)
        if (plan.actions[i].kind == ACTION_CREATE && plan.actions[i].child == CHILD_POD) {
            bytes += strlen(plan.actions[i].body);
            created++;
        }
    assert_in_range(bytes, 1, PASS_BYTES + 2 * NOTE_BYTES);
    assert_in_range(created, 2, PORTION - 1);
    assert_int_equal(plan.requeue_ms, in.now_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pods_come_in_portions),
                                       cmocka_unit_test(test_large_pods_come_in_small_portions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
