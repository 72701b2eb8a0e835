/* test_many.c - the largest job: its pods are made in portions, and its status still fits. */
#include "jsontext.h"
#include "operator/plan/plan.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define JOB                                                                                                  \
    "{'metadata':{'name':'j','namespace':'n','uid':'u','resourceVersion':'1'},'spec':{'torchrunConfig':{'"   \
    "enabled':true},'replicaSpecs':[{'type':'node','replicas':1024,'template':{'spec':{'containers':[{'"     \
    "name':'c'}]}}}]}}"

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
        p->reason = p->message = p->disruption = p->disruption_msg = "";
        p->unplaced_by = p->finalizer = "";
        p->training = (struct pod_container){"c", "", "", CONTAINER_RUNNING, 0, 0, 0};
        p->init = (struct pod_container){"", "", "", CONTAINER_NONE, 0, 0, 0};
        p->phase = POD_RUNNING;
        list[i] = p;
    }
    return list;
}

/* want 0: some, but few. */
static void check(struct trainjob *job, int there, int want)
{
    cleanup_arena struct arena a = {0};
    const struct plan_input in = {.job = job,
                                  .pods = pods_there(there, &a),
                                  .n_pods = there,
                                  .now_ms = 1767225600000,
                                  .tensorboard_image = "tb",
                                  .launcher_image = "launcher"};
    struct plan plan;
    int created = 0;

    plan_trainjob(&in, &a, &plan);
    for (int i = 0; i < plan.n_actions; i++) {
        const struct action *act = &plan.actions[i];
        created += act->kind == ACTION_CREATE && act->child == CHILD_POD;
        if (act->kind == ACTION_STATUS)
            assert_true(strlen(act->body) < 400000); /* etcd takes 1.5 MiB; each pod has some 150 bytes */
    }
    if (want)
        assert_int_equal(created, want);
    else
        assert_in_range(created, there < PODS ? 10 : 0, PORTION / 2);
    assert_int_equal(plan.requeue_ms, there + created < PODS ? in.now_ms : 0); /* the rest at once */
}

static void test_pods_come_in_portions(void **state)
{
    struct err err;
    cleanup_trainjob struct trainjob *job = trainjob_decode(jsontext_parse(JOB), &err);

    (void)state;
    assert_non_null(job);
    assert_null(job->spec_error);
    check(job, 0, 0); /* the first may be refused */
    check(job, 1, PORTION);
    check(job, PORTION, PORTION);
    check(job, PODS - PORTION - 1, PORTION);
    check(job, PODS - PORTION, PORTION);
    check(job, PODS - 3, 3);
    check(job, PODS, 0);
}

/* Two replicaSpecs, each template with an annotation of so many bytes. */
static struct trainjob *noted_job(size_t note_bytes, struct arena *a)
{
    static const char FORMAT[] = "{'metadata':{'name':'j','namespace':'n','uid':'u','resourceVersion':'1'},'"
                                 "spec':{'torchrunConfig':{'enabled':true},'replicaSpecs':[%s,%s]}}";
    struct err err;
    char *note = arena_alloc(a, note_bytes + 1);
    char *specs[2];

    memset(note, 'x', note_bytes);
    for (int i = 0; i < 2; i++)
        specs[i] = arena_printf(a,
                                "{'type':'%s','replicas':40,'template':{'metadata':{'annotations':{'note':'%"
                                "s'}},'spec':{'containers':[{'name':'c'}]}}}",
                                i ? "worker" : "node", note);
    char *text = arena_printf(a, FORMAT, specs[0], specs[1]);
    struct trainjob *job = trainjob_decode(jsontext_parse(text), &err);
    assert_non_null(job);
    assert_null(job->spec_error);
    return job;
}

struct portion {
    size_t note_bytes, create_bytes;
    int there; /* of the first spec */
    bool problem;
    int min_pods, max_pods; /* made */
    int first;              /* of them, the first of their spec */
};

/* A template may be as large as an object of etcd, and a pass holds the bodies of all that it creates. */
static void test_large_pods_come_in_small_portions(void **state)
{
    static const struct portion ROWS[] = {
        {10, 1 << 20, 0, false, 10, 50, 2},  /* the first of each may be refused: not over PLAN_FIRST_BYTES */
        {10, 1 << 20, 40, false, 10, 39, 1}, /* nor the first of the other spec */
        {10, 1 << 20, 1, false, 40, 79, 1},  /* of the first spec all, and of the other one some */
        {10, 2000, 1, false, 1, 3, 1},       /* as many as it may */
        {10, 1, 1, false, 1, 1, 1},          /* and one at least */
        {100000, 0, 0, false, 1, 1, 1},      /* PLAN_FIRST_BYTES, and one at least */
        {100000, 0, 1, false, 5, 5, 1},      /* PLAN_CREATE_BYTES */
        {100000, 250000, 1, false, 2, 2, 1},
        {100000, 250000, 1, true, 1, 1, 1},     /* what was refused may be refused again */
        {30000, 1 << 20, 30, false, 11, 11, 1}, /* the rest of the spec, and the first of the other one */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct portion *row = &ROWS[i];
        cleanup_arena struct arena a = {0};
        cleanup_trainjob struct trainjob *job = noted_job(row->note_bytes, &a);
        struct plan_input in = {.job = job,
                                .pods = pods_there(row->there, &a),
                                .n_pods = row->there,
                                .now_ms = 1767225600000,
                                .tensorboard_image = "tb",
                                .launcher_image = "launcher",
                                .create_bytes = row->create_bytes};
        struct plan plan;
        int created = 0;
        int first = 0;
        if (row->problem)
            in.problem = (struct plan_problem){PROBLEM_FAILED, CHILD_POD, "j-node-1", "words", 1};
        plan_trainjob(&in, &a, &plan);
        for (int k = 0; k < plan.n_actions; k++) {
            created += plan.actions[k].kind == ACTION_CREATE && plan.actions[k].child == CHILD_POD;
            first += plan.actions[k].first;
        }
        if (created < row->min_pods || created > row->max_pods || first != row->first)
            fail_msg("row %zu: %d pods, %d of them first", i, created, first);
        assert_int_equal(plan.requeue_ms, in.now_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pods_come_in_portions),
                                       cmocka_unit_test(test_large_pods_come_in_small_portions)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
