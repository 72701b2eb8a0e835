/* test_guards.c - which jobs get a NetworkPolicy and a key, when, and which of their pods. */
#include "common/contract.h"
#include "operator/plan/guards.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORCHRUN "\"torchrunConfig\":{\"enabled\":true},"
#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BOARD "\"tensorboardSpec\":{\"logDir\":{\"pvc\":[{\"name\":\"c\"}]}},"
#define PODS_MAX 2

/* A job whose spec begins with `members`, and what is planned for it. */
struct made {
    struct arena arena;
    struct trainjob *job;
    struct pod *pods[PODS_MAX];
    struct plan_input in;
    struct plan plan;
};

static struct trainjob *job_of(const char *members, int replicas, const char *pod_members)
{
    char text[2048];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"resourceVersion\":\"7\","
             "\"generation\":1},\"spec\":{%s\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":%d,"
             "\"template\":{\"metadata\":{\"labels\":{}},\"spec\":{%s\"containers\":[{\"name\":\"pytorch\","
             "\"image\":\"i\"}]}}}]}}",
             members, replicas, pod_members);
    struct trainjob *job = trainjob_decode(json_parse(text, strlen(text), &err), &err);
    assert_non_null(job);
    assert_null(job->spec_error);
    return job;
}

static struct pod *pod_of(int index, const char *env)
{
    char text[1024];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"j-node-%d\",\"namespace\":\"ns\",\"uid\":\"p%d\","
             "\"resourceVersion\":\"8\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{"
             "\"batch.tensorstack.dev/replica-type\":\"node\",\"batch.tensorstack.dev/replica-index\":\"%d\","
             "\"batch.tensorstack.dev/attempt\":\"0\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{"
             "\"name\":\"pytorch\",\"env\":[%s]}]},\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{"
             "\"name\":\"pytorch\",\"state\":{\"running\":{}}}]}}",
             index, index, index, env);
    cleanup_json cJSON *object = json_parse(text, strlen(text), &err);
    struct pod *pod = pod_decode(object, NULL, &err);
    assert_non_null(pod);
    return pod;
}

static void plan(struct made *m)
{
    m->in.job = m->job;
    m->in.pods = (const struct pod *const *)m->pods;
    m->in.now_ms = 1767225600000;
    m->in.launcher_image = m->in.tensorboard_image = "i";
    plan_trainjob(&m->in, &m->arena, &m->plan);
}

static struct made all_on(const char *members, int replicas, const char *pod_members)
{
    struct made m = {.job = job_of(members, replicas, pod_members)};

    m.in.guards = (struct plan_guards){.isolate = true, .operator_ns = "ops", .new_key = KEY};
    return m;
}

static void release(struct made *m)
{
    for (int i = 0; i < m->in.n_pods; i++)
        free(m->pods[i]);
    trainjob_free(m->job);
    arena_release(&m->arena);
}

/* The n-th create of this kind, from 0; NULL: there are not so many. */
static const struct action *created(const struct made *m, enum child_kind child, int n)
{
    for (int i = 0; i < m->plan.n_actions; i++)
        if (m->plan.actions[i].kind == ACTION_CREATE && m->plan.actions[i].child == child && n-- == 0)
            return &m->plan.actions[i];
    return NULL;
}

static bool says(const struct action *pod, const char *text)
{
    assert_non_null(pod);
    return strstr(pod->body, text) != NULL;
}

/* ---- a new job */

#define META(kind, version)                                                                                  \
    "{\"apiVersion\":\"" version "\",\"kind\":\"" kind "\",\"metadata\":{\"name\":\"j-u-1\","                \
    "\"namespace\":\"ns\",\"labels\":{\"batch.tensorstack.dev/job\":\"j\",\"tensorstack.dev/owner-name\":"   \
    "\"j\"},\"ownerReferences\":[{\"apiVersion\":\"batch.tensorstack.dev/v1beta1\",\"kind\":"                \
    "\"PyTorchTrainingJob\",\"name\":\"j\",\"uid\":\"u-1\",\"controller\":true,"                             \
    "\"blockOwnerDeletion\":true}]},"

/* With ' for ". */
static const char POLICY[] =
    "'spec':{'podSelector':{'matchLabels':{'batch.tensorstack.dev/isolated':'j'}},'policyTypes':['Ingress'],"
    "'ingress':[{'from':[{'podSelector':{'matchLabels':{'batch.tensorstack.dev/job':'j'}}}]},"
    "{'from':[{'namespaceSelector':{'matchLabels':{'kubernetes.io/metadata.name':'ops'}},"
    "'podSelector':{'matchLabels':{'app.kubernetes.io/name':'torchkeeper',"
    "'app.kubernetes.io/component':'operator'}}},"
    "{'namespaceSelector':{'matchLabels':{'kubernetes.io/metadata.name':'monitoring'}}}],"
    "'ports':[{'port':29402}]},"
    "{'from':[{'podSelector':{}}],'ports':[{'port':6006}]}]}}";

static void assert_policy(const char *body)
{
    static const char HEAD[] = META("NetworkPolicy", "networking.k8s.io/v1");
    char want[2048];

    snprintf(want, sizeof(want), "%s%s", HEAD, POLICY);
    for (char *quote = want; (quote = strchr(quote, '\''));)
        *quote = '"';
    assert_string_equal(body, want);
}

static const char SECRET[] = META("Secret", "v1") "\"immutable\":true,\"stringData\":{\"key\":\"" KEY "\"}}";

static const char KEY_ENV[] = "{\"name\":\"" CONTRACT_ENV_JOB_KEY
                              "\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"j-u-1\",\"key\":\"key\"}}}";

static void test_both_are_made_before_the_pods(void **state)
{
    struct made m = all_on(TORCHRUN, 2, "");

    (void)state;
    m.in.guards.scraper_ns = "monitoring";
    plan(&m);
    assert_ptr_equal(created(&m, CHILD_SERVICE, 0), &m.plan.actions[0]);
    assert_ptr_equal(created(&m, CHILD_POLICY, 0), &m.plan.actions[1]);
    assert_ptr_equal(created(&m, CHILD_KEY, 0), &m.plan.actions[2]);
    assert_ptr_equal(created(&m, CHILD_POD, 0), &m.plan.actions[3]);
    assert_string_equal(m.plan.actions[1].name, "j-u-1");
    assert_policy(m.plan.actions[1].body);
    assert_string_equal(m.plan.actions[2].name, "j-u-1");
    assert_string_equal(m.plan.actions[2].body, SECRET);
    for (int i = 0; i < 2; i++) {
        assert_true(says(created(&m, CHILD_POD, i), KEY_ENV));
        assert_true(says(created(&m, CHILD_POD, i), "\"batch.tensorstack.dev/isolated\":\"j\""));
        assert_false(says(created(&m, CHILD_POD, i), KEY));
    }
    release(&m);
}

static void test_which_jobs_have_them(void **state)
{
    static const struct {
        const char *members;
        int replicas;
        const char *pod_members;
        bool policy, key;
    } ROWS[] = {
        {TORCHRUN, 1, "", true, false},
        {"", 2, "", true, false},
        {"\"torchrunConfig\":{\"enabled\":true,\"rdzvBackend\":\"static\"},", 2, "", true, true},
        {"\"torchrunConfig\":{\"enabled\":true,\"rdzvBackend\":\"etcd\",\"extraOptions\":[\"--rdzv_endpoint="
         "e:1\"]},",
         2, "", true, false},
        {TORCHRUN "\"runMode\":{\"debug\":{\"enabled\":true}},", 2, "", true, false},
        {"\"torchrunConfig\":{\"enabled\":true,\"maxRestarts\":1},\"elastic\":{\"enabled\":true,"
         "\"minReplicas\":1,\"maxReplicas\":3},",
         1, "", true, true},
        {TORCHRUN "\"runPolicy\":{\"networkPolicy\":false},", 2, "", false, true},
        {TORCHRUN "\"runPolicy\":{\"networkPolicy\":true},", 2, "", true, true},
        {TORCHRUN, 2, "\"hostNetwork\":true,", false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(*ROWS); i++) {
        struct made m = all_on(ROWS[i].members, ROWS[i].replicas, ROWS[i].pod_members);
        plan(&m);
        const struct action *pod = created(&m, CHILD_POD, 0);
        if ((created(&m, CHILD_POLICY, 0) != NULL) != ROWS[i].policy ||
            says(pod, "isolated") != ROWS[i].policy || (created(&m, CHILD_KEY, 0) != NULL) != ROWS[i].key ||
            says(pod, "secretKeyRef") != ROWS[i].key)
            fail_msg("row %d", (int)i);
        release(&m);
    }
}

/* TensorBoard's pods are behind the same policy, and are not the job's. */
static void test_tensorboards_pods_are_isolated(void **state)
{
    static const char LABELS[] =
        "\"template\":{\"metadata\":{\"labels\":{\"batch.tensorstack.dev/tensorboard\":\"j\"%s}}";

    (void)state;
    for (int on = 0; on < 2; on++) {
        struct made m = all_on(BOARD, 1, "");
        char want[256];
        snprintf(want, sizeof(want), LABELS, on ? ",\"batch.tensorstack.dev/isolated\":\"j\"" : "");
        m.in.guards.isolate = on;
        m.pods[0] = pod_of(0, "");
        m.in.n_pods = 1;
        plan(&m);
        assert_true(says(created(&m, CHILD_DEPLOYMENT, 0), want));
        assert_true(says(created(&m, CHILD_DEPLOYMENT, 0),
                         "\"selector\":{\"matchLabels\":{\"batch.tensorstack.dev/tensorboard\":\"j\"}}"));
        release(&m);
    }
}

static void test_an_operator_without_them(void **state)
{
    struct made m = all_on(TORCHRUN, 2, "");

    (void)state;
    m.in.guards = (struct plan_guards){0};
    plan(&m);
    assert_ptr_equal(created(&m, CHILD_SERVICE, 0), &m.plan.actions[0]);
    assert_false(says(created(&m, CHILD_POD, 0), "isolated"));
    assert_false(says(created(&m, CHILD_POD, 0), "secretKeyRef"));
    release(&m);
}

/* The user's own setting of the variable wins, as of any other. */
static void test_the_users_own_key(void **state)
{
    struct made m = all_on(TORCHRUN, 2, "");

    (void)state;
    cJSON *c = cJSON_GetArrayItem(
        json_find(m.job->spec.replica_specs[0].template, (const char *[]){"spec", "containers", NULL}), 0);
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "name", CONTRACT_ENV_JOB_KEY);
    cJSON_AddStringToObject(item, "value", "theirs");
    cJSON_AddItemToArray(cJSON_AddArrayToObject(c, "env"), item);
    plan(&m);
    assert_true(says(created(&m, CHILD_POD, 0), "theirs"));
    assert_false(says(created(&m, CHILD_POD, 0), "secretKeyRef"));
    release(&m);
}

/* Policies go by these labels: a template cannot put its pods among another job's. */
static void test_a_template_names_no_other_job(void **state)
{
    struct made m = all_on(TORCHRUN, 2, "");
    cJSON *labels =
        cJSON_GetObjectItem(json_child(m.job->spec.replica_specs[0].template, "metadata"), "labels");

    (void)state;
    cJSON_AddStringToObject(labels, LABEL_JOB, "other");
    cJSON_AddStringToObject(labels, LABEL_ISOLATED, "other");
    plan(&m);
    assert_true(says(created(&m, CHILD_POD, 0), "\"" LABEL_JOB "\":\"j\""));
    assert_false(says(created(&m, CHILD_POD, 0), "other"));
    release(&m);
}

/* ---- later passes */

/* A pod of the attempt exists: it shows whether the others get the key. An attempt that an older operator began has none. */
static void test_pods_of_an_attempt_are_alike(void **state)
{
    static const char KEYED[] = "{\"name\":\"" CONTRACT_ENV_JOB_KEY "\",\"valueFrom\":{}}";

    (void)state;
    for (int keyed = 0; keyed < 2; keyed++)
        for (int on = 0; on < 2; on++) {
            struct made m = all_on(TORCHRUN, 2, "");
            m.pods[0] = pod_of(0, keyed ? KEYED : "{\"name\":\"A\"}");
            m.in.n_pods = 1;
            m.in.guards.new_key = on ? KEY : NULL;
            plan(&m);
            assert_null(created(&m, CHILD_POLICY, 0));
            assert_null(created(&m, CHILD_KEY, 0));
            assert_int_equal(says(created(&m, CHILD_POD, 0), "secretKeyRef"), keyed);
            release(&m);
        }
}

/* A pod with the job's label and owner that no slot knows: whoever made it, the others have their guards. */
static void test_a_stray_pod_decides_nothing(void **state)
{
    struct made m = all_on(TORCHRUN, 2, "");

    (void)state;
    m.pods[0] = pod_of(2, "");
    m.pods[1] = pod_of(3, "");
    m.in.n_pods = 2;
    plan(&m);
    assert_non_null(created(&m, CHILD_POLICY, 0));
    assert_non_null(created(&m, CHILD_KEY, 0));
    for (int i = 0; i < 2; i++)
        assert_true(says(created(&m, CHILD_POD, i), "secretKeyRef"));
    release(&m);
}

/* TensorBoard of a job that was never resumed has its policy in front of it; with the job's first pod there is one create. */
static void test_tensorboards_policy(void **state)
{
    static const char *const MEMBERS[] = {"", "\"suspend\":true,"};
    char members[256];

    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(members, sizeof(members), "%s" BOARD, MEMBERS[i]);
        struct made m = all_on(members, 1, "");
        m.in.status_first = true; /* so that all is in one plan */
        plan(&m);
        const struct action *board = created(&m, CHILD_DEPLOYMENT, 0);
        assert_true(says(board, LABEL_ISOLATED));
        assert_true(created(&m, CHILD_POLICY, 0) < board);
        assert_non_null(created(&m, CHILD_POLICY, 0));
        assert_null(created(&m, CHILD_POLICY, 1));
        assert_null(created(&m, CHILD_KEY, 0));
        release(&m);
    }
}

static const char *annotated_hash(const struct made *m)
{
    const char *hash = strstr(created(m, CHILD_DEPLOYMENT, 0)->body, ANNOTATION_SPEC_HASH);

    assert_non_null(hash);
    return hash;
}

/* The label is not of the spec that a TensorBoard is replaced for: an upgrade and a switch leave it. */
static void test_tensorboard_is_not_replaced_for_its_label(void **state)
{
    struct made on = all_on(BOARD, 1, "");
    struct made off = all_on(BOARD, 1, "");

    (void)state;
    on.in.status_first = off.in.status_first = true;
    off.in.guards.isolate = false;
    plan(&on);
    plan(&off);
    assert_memory_equal(annotated_hash(&on), annotated_hash(&off), strlen(ANNOTATION_SPEC_HASH) + 19);
    release(&on);
    release(&off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_are_made_before_the_pods),
        cmocka_unit_test(test_which_jobs_have_them),
        cmocka_unit_test(test_tensorboards_pods_are_isolated),
        cmocka_unit_test(test_an_operator_without_them),
        cmocka_unit_test(test_a_template_names_no_other_job),
        cmocka_unit_test(test_the_users_own_key),
        cmocka_unit_test(test_pods_of_an_attempt_are_alike),
        cmocka_unit_test(test_a_stray_pod_decides_nothing),
        cmocka_unit_test(test_tensorboards_policy),
        cmocka_unit_test(test_tensorboard_is_not_replaced_for_its_label),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
