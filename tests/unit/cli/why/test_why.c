/* test_why.c - kubectl ptj why as a process: what it reads, and what it skips without a permission.
 *
 * usage: test_why <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"
#include "ptj.h"

#include "cli/why/collect.h"
#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORE "/api/v1/namespaces/team"
#define JOBS "/apis/batch.tensorstack.dev/v1beta1/namespaces/team/pytorchtrainingjobs"

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    fake_add_kind(p.server, "/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim");
    fake_add_kind(p.server, "/api/v1", "nodes", "Node");
    fake_add_kind(p.server, "/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget");
    *state = &p;
    return 0;
}

static const char SPEC[] = "{\"replicaSpecs\":[{\"type\":\"node\",\"template\":{\"spec\":{\"containers\":[{"
                           "\"name\":\"main\",\"image\":\"i\"}]}}}]}";

static char *uid_of(struct ptj *p, const char *path)
{
    cleanup_json cJSON *object = fake_json(p->server, path);

    return strdup(json_meta(object, "uid"));
}

/* The job's pod of this index, into which a mesh has put its proxy, with these volumes, conditions and container state. */
static void put_pod_of(struct ptj *p, int index, const char *volumes, const char *status)
{
    char spec[512];

    snprintf(
        spec, sizeof(spec),
        "{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"mesh-proxy\"},{\"name\":\"main\"}],\"volumes\":%s}",
        volumes);
    ptj_put_pod(p, index, 0, spec, status);
}

static void put_pod(struct ptj *p, const char *volumes, const char *status)
{
    put_pod_of(p, 0, volumes, status);
}

static void put_event(struct ptj *p, const char *name, const char *kind, const char *about,
                      const char *reason, const char *message)
{
    char path[128], text[1024];

    snprintf(path, sizeof(path), CORE "/events/%s", name);
    snprintf(text, sizeof(text),
             "{\"involvedObject\":{\"kind\":\"%s\",\"name\":\"%s\"},\"type\":\"Warning\",\"reason\":\"%s\","
             "\"message\":\"%s\","
             "\"lastTimestamp\":\"2026-01-01T00:00:00Z\"}",
             kind, about, reason, message);
    assert_true(fake_put(p->server, path, text));
}

static void expect(struct ptj *p, const char *const *args, const char *const *parts)
{
    struct ptj_result r = ptj_run(p, args);

    assert_string_equal(r.err, "");
    assert_int_equal(r.status, 0);
    for (; *parts; parts++)
        if (!strstr(r.out, *parts))
            fail_msg("expected \"%s\" in:\n%s", *parts, r.out);
    ptj_forget(&r);
}

static void refuse(struct ptj *p, const char *part)
{
    static struct fake_fault_plan plan;

    plan = (struct fake_fault_plan){.path_part = part, PTJ_FORBIDDEN};
    fake_plan_fault(p->server, &plan);
}

static void put_failed(struct ptj *p)
{
    cleanup_free char *status = NULL;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Running\"}");
    put_pod(
        p, "[]",
        "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"mesh-proxy\",\"state\":{\"running\":{}}},"
        "{\"name\":\"main\",\"state\":{\"terminated\":{"
        "\"exitCode\":1,"
        "\"reason\":\"Error\"}}}]}");
    cleanup_free char *uid = uid_of(p, CORE "/pods/j-node-0");
    assert_true(
        asprintf(
            &status,
            "{\"phase\":\"Failed\",\"reason\":\"PermanentExitCode\",\"completionTime\":\"2026-01-01T00:00:"
            "00Z\","
            "\"lastFailure\":{\"pod\":\"j-node-0\",\"uid\":\"%s\",\"node\":\"n1\",\"exitCode\":1,\"reason\":"
            "\"PermanentExitCode\",\"time\":\"2026-01-01T00:00:00Z\",\"attempt\":0}}",
            uid) > 0);
    ptj_put_job(p, "j", SPEC, status);
    fake_pod_prints(
        p->server, CORE "/pods/j-node-0",
        "2026-01-01T00:00:00Z   File \"a.py\", line 2, in f\n2026-01-01T00:00:00Z KeyError: 'lr'\n");
    fake_pod_log_ends(p->server, CORE "/pods/j-node-0");
}

/* A budget of 0 expected pods blocks a node's drain. A user without permission for budgets sees that they were not read. */
static void test_budget(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Running\",\"ready\":\"1/1\"}");
    put_pod(p, "[]",
            "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}}]}");
    assert_true(fake_put(p->server, "/apis/policy/v1/namespaces/team/poddisruptionbudgets/guard",
                         "{\"spec\":{\"maxUnavailable\":1,\"selector\":{}},\"status\":{\"expectedPods\":0,"
                         "\"disruptionsAllowed\":0}}"));
    expect(p, RUN("why", "j"), RUN("Running for ", "PodDisruptionBudget guard expects 0 pods", "to 1,"));
    expect(p, RUN("why", "j", "--context=c"), RUN("kubectl ptj logs j -n team --context=c shows"));
    refuse(p, "/poddisruptionbudgets");
    expect(p, RUN("why", "j"), RUN("Running for ", "you lack the permission to list poddisruptionbudgets"));
    fake_plan_fault(p->server, NULL);
}

/* Asked of Kueue with the user's permissions; without them, or without an answer, nothing is said about it. */
static void test_place(void **state)
{
    static const char API[] = "/apis/visibility.kueue.x-k8s.io/v1beta2";
    struct ptj *p = *state;
    char items[512];

    ptj_put_job(
        p, "j", SPEC,
        "{\"phase\":\"Pending\",\"reason\":\"Queued\",\"conditions\":[{\"type\":\"Running\",\"status\":"
        "\"False\",\"reason\":\"Queued\",\"message\":\"m\"}]}");
    assert_true(
        fake_put(p->server, JOBS "/j", "{\"metadata\":{\"labels\":{\"kueue.x-k8s.io/queue-name\":\"q\"}}}"));
    struct ptj_result r = ptj_run(p, RUN("why", "j"));
    assert_null(strstr(r.out, "place"));
    assert_null(strstr(r.out, "localqueues."));
    ptj_forget(&r);
    fake_add_kind(p->server, API, "localqueues", "LocalQueue");
    cleanup_free char *uid = uid_of(p, JOBS "/j");
    snprintf(
        items, sizeof(items),
        "{\"items\":[{\"metadata\":{\"ownerReferences\":[{\"uid\":\"other\"}]},\"positionInClusterQueue\":0},"
        "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"%s\"}]},\"positionInClusterQueue\":6,"
        "\"positionInLocalQueue\":1}]}",
        uid);
    assert_true(
        fake_put(p->server, "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/q", items));
    expect(p, RUN("why", "j"),
           RUN("waits in its queue",
               "place 7 of all that wait in the ClusterQueue, 2 of those in LocalQueue q."));
    refuse(p, "/pendingworkloads");
    r = ptj_run(p, RUN("why", "j"));
    assert_null(strstr(r.out, "place"));
    assert_null(strstr(r.out, "permission"));
    ptj_forget(&r);
    fake_plan_fault(p->server, NULL);
}

/* The claim of an ephemeral volume has a name of its own, and the events of a pod outlive it. */
static void test_own_names(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Pending\",\"reason\":\"ClaimNotBound j-node-0-scratch\"}");
    put_pod(
        p, "[{\"name\":\"scratch\",\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{}}}}]",
        "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
        "\"Unschedulable\",\"message\":\"pod has unbound immediate PersistentVolumeClaims. not found\"}]}");
    assert_true(fake_put(p->server, CORE "/persistentvolumeclaims/j-node-0-scratch",
                         "{\"spec\":{\"storageClassName\":\"fast\"},\"status\":{\"phase\":\"Pending\"}}"));
    put_event(p, "e1", "PersistentVolumeClaim", "j-node-0-scratch", "ProvisioningFailed", "no class fast");
    expect(p, RUN("why", "j"),
           RUN("a PersistentVolumeClaim has no volume",
               "Claim j-node-0-scratch (storage class fast): no class fast"));
    put_failed(p);
    assert_true(fake_remove(p->server, CORE "/pods/j-node-0"));
    put_event(p, "e2", "Pod", "j-node-0", "Killing", "Container main failed liveness probe");
    expect(p, RUN("why", "j"), RUN("its probe failed", "Container main failed liveness probe"));
}

/* The status has no message: the log of the rank is read. */
static void test_log(void **state)
{
    struct ptj *p = *state;

    put_failed(p);
    expect(p, RUN("why", "j"),
           RUN("Failed: a rank ended with an exception\n", "pod j-node-0, node n1, exit code 1,",
               "Last lines of j-node-0:\n    File \"a.py\", line 2, in f\n  KeyError: 'lr'\n",
               "\nOperator: nothing: ", "\nDo:       "));
    expect(p, RUN("why", "j", "--context=c", "--as", "a b"),
           RUN("Then kubectl delete ptj j -n team --context=c '--as=a b', and create"));
    assert_int_equal(fake_log_count(p->server, "GET", "/log?container=main&tailLines=400"), 2);
}

static cJSON *json_of(struct ptj *p, const char *name)
{
    struct ptj_result r = ptj_run(p, RUN("why", name, "-o", "json"));
    struct err err;

    assert_int_equal(r.status, 0);
    assert_string_equal(r.err, "");
    assert_ptr_equal(strchr(r.out, '\n'), r.out + strlen(r.out) - 1);
    cJSON *o = json_parse(r.out, strlen(r.out), &err);
    if (!o)
        fail_msg("%s: %s", err.msg, r.out);
    for (const char *c = r.out; *c; c++)
        assert_true((unsigned char)*c >= ' ' || *c == '\n');
    ptj_forget(&r);
    return o;
}

static void expect_text(const cJSON *o, const char *key, const char *want)
{
    const char *got = json_str(o, key);

    if (!want ? got != NULL : !got || strcmp(got, want) != 0)
        fail_msg("%s: expected \"%s\", got \"%s\"", key, want ? want : "none", got ? got : "none");
}

static void test_json(void **state)
{
    struct ptj *p = *state;

    put_failed(p);
    fake_pod_prints(p->server, CORE "/pods/j-node-0", "2026-01-01T00:00:01Z \x1b[2J \xff \xe2\x80\xae\n");
    cleanup_json cJSON *o = json_of(p, "j");
    const cJSON *cause = cJSON_GetObjectItem(o, "cause"), *pods = cJSON_GetObjectItem(o, "pods");
    expect_text(o, "namespace", "team");
    expect_text(o, "name", "j");
    expect_text(o, "phase", "Failed");
    expect_text(o, "reason", "PermanentExitCode");
    expect_text(o, "ready", NULL);
    expect_text(o, "summary", "a rank ended with an exception");
    assert_int_equal(json_i64(o, "attempt", -1), 0);
    expect_text(cause, "kind", "PodFailed");
    expect_text(cause, "pod", "j-node-0");
    expect_text(cause, "node", "n1");
    expect_text(cause, "since", "2026-01-01T00:00:00Z");
    assert_int_equal(json_i64(cause, "exitCode", -1), 1);
    assert_false(cJSON_HasObjectItem(cause, "rank") || cJSON_HasObjectItem(cause, "signal"));
    assert_string_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(cause, "log"), 1)->valuestring,
                        "KeyError: 'lr'");
    assert_non_null(strstr(json_str(cJSON_GetObjectItem(o, "next"), "user"), "kubectl delete ptj j -n team"));
    assert_int_equal(cJSON_GetArraySize(pods), 1);
    expect_text(pods->child, "name", "j-node-0");
    expect_text(cJSON_GetObjectItem(pods->child, "cause"), "kind", "PodFailed");
    assert_false(cJSON_HasObjectItem(o, "notRead"));
    ptj_expect(p, RUN("why", "j", "-o", "yaml"), 2, NULL, "--output: expected json, got \"yaml\"");
}

/* What could not be read is named, and its fields are absent; of a job that runs there is no cause. */
static void test_json_of_less(void **state)
{
    struct ptj *p = *state;

    put_failed(p);
    assert_true(fake_put(p->server, CORE "/pods/j-node-0",
                         "{\"metadata\":{\"labels\":{\"batch.tensorstack.dev/attempt\":null}}}"));
    cleanup_json cJSON *less = json_of(p, "j");
    expect_text(cJSON_GetObjectItem(less, "pods")->child, "name", "j-node-0");
    assert_false(cJSON_HasObjectItem(cJSON_GetObjectItem(less, "pods")->child, "attempt"));
    refuse(p, "/pods");
    cleanup_json cJSON *o = json_of(p, "j");
    assert_false(cJSON_HasObjectItem(o, "pods"));
    assert_non_null(
        strstr(cJSON_GetObjectItem(o, "notRead")->child->valuestring, "list pods in namespace team"));
    fake_plan_fault(p->server, NULL);
    ptj_put_job(p, "runs", SPEC, "{\"phase\":\"Running\",\"ready\":\"1/1\"}");
    cleanup_json cJSON *runs = json_of(p, "runs");
    assert_false(cJSON_HasObjectItem(runs, "cause") || cJSON_HasObjectItem(runs, "failures"));
    expect_text(runs, "ready", "1/1");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(runs, "pods")), 0);
    ptj_expect(p, RUN("why", "none", "-o", "json"), 1, NULL, "there is no training job \"none\"");
}

static void test_rights(void **state)
{
    struct ptj *p = *state;

    put_failed(p);
    refuse(p, "/log");
    expect(p, RUN("why", "j", "--all"),
           RUN("Failed: a program ended with exit code 1",
               "Not read: you lack the permission to get pods/log in namespace team"));
    refuse(p, "/pods");
    expect(p, RUN("why", "j", "--all"),
           RUN("Failed: a program ended with exit code 1",
               "Not read: you lack the permission to list pods in namespace team"));
    refuse(p, "/events");
    expect(p, RUN("why", "j", "--all"),
           RUN("KeyError: 'lr'", "Not read: you lack the permission to list events in namespace team"));
    refuse(p, "/pytorchtrainingjobs");
    ptj_expect(p, RUN("why", "j"), 1, NULL, "you lack the permission to get pytorchtrainingjobs");
    fake_plan_fault(p->server, NULL);
    ptj_expect(p, RUN("why", "none"), 1, NULL, "there is no training job \"none\"");
}

static void test_claims_and_events(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Pending\",\"reason\":\"ClaimNotBound data\"}");
    put_pod(
        p, "[{\"name\":\"d\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]",
        "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
        "\"Unschedulable\",\"message\":\"pod has unbound immediate PersistentVolumeClaims.\"}]}");
    assert_true(fake_put(p->server, CORE "/persistentvolumeclaims/data",
                         "{\"spec\":{\"storageClassName\":\"fast\"},\"status\":{\"phase\":\"Pending\"}}"));
    put_event(p, "e1", "PersistentVolumeClaim", "data", "ProvisioningFailed", "no class fast");
    expect(p, RUN("why", "j", "--all"),
           RUN("a PersistentVolumeClaim has no volume", "Claim data (storage class fast): no class fast",
               "Event:    data: ProvisioningFailed: no class fast"));
    refuse(p, "/persistentvolumeclaims");
    expect(p, RUN("why", "j", "--all"),
           RUN("a PersistentVolumeClaim has no volume",
               "you lack the permission to get persistentvolumeclaims"));
    fake_plan_fault(p->server, NULL);
}

/* Text is cut to the size of a terminal, not in a pipe; lines of it are joined by spaces. */
static void test_pipe(void **state)
{
    struct ptj *p = *state;
    struct onpty t;
    char status[1024];

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Pending\",\"reason\":\"PodsStarting\"}");
    snprintf(
        status, sizeof(status),
        "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
        "\"Unschedulable\",\"message\":\"first\\nsecond %0400d the end\"}]}",
        0);
    put_pod(p, "[]", status);
    expect(p, RUN("why", "j"), RUN("\n  first second 0000", "0000 the end\n"));
    expect(p, RUN("why", "j", "--all"), RUN("\n  first second 0000", "0000 the end\n"));
    onpty_start(&t, p, RUN("why", "j"), 80, 24);
    onpty_until(&t, "first second ... the end");
    assert_int_equal(onpty_wait(&t), 0);
    onpty_end(&t);
}

static void test_node(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Running\",\"ready\":\"1/1\"}");
    put_pod(p, "[]",
            "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],"
            "\"containerStatuses\":[{\"name\":"
            "\"main\",\"state\":{\"running\":{}}}]}");
    assert_true(fake_put(p->server, "/api/v1/nodes/n1",
                         "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Unknown\","
                         "\"message\":\"silent\"}]}}"));
    expect(p, RUN("why", "j"), RUN("Running: the node n1 is lost", "silent"));
    refuse(p, "/nodes");
    expect(p, RUN("why", "j", "--all"), RUN("Running for ", "you lack the permission to get nodes"));
    fake_plan_fault(p->server, NULL);
    put_pod(p, "[]",
            "{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"terminated\":{"
            "\"exitCode\":255,"
            "\"reason\":\"Unknown\"}}}]}");
    expect(p, RUN("why", "j"), RUN("Running: the node n1 lost the container", "exit code 255"));
}

/* Its proxy cannot start, though the training runs. */
static void test_sidecar(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Pending\",\"reason\":\"PodsStarting\"}");
    put_pod(p, "[]",
            "{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"mesh-proxy\",\"state\":{\"waiting\":{"
            "\"reason\":"
            "\"ContainerCreating\"}}},{\"name\":\"main\",\"state\":{\"running\":{}}}]}");
    expect(p, RUN("why", "j"), RUN("pod j-node-0 on node n1: its containers are being started"));
    put_pod(p, "[]",
            "{\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"mesh-proxy\",\"state\":{\"waiting\":{"
            "\"reason\":"
            "\"CreateContainerConfigError\",\"message\":\"secret \\\"nosuch\\\" not "
            "found\"}}},{\"name\":\"main\",\"state\":{\"running\":{}}}]}");
    expect(p, RUN("why", "j"), RUN("secret \"nosuch\" not found", "container mesh-proxy: secret"));
}

/* The pod that waits stands behind two full pages of pods that run. */
static void test_pages(void **state)
{
    static const char RUNS[] =
        "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}}]}";
    struct ptj *p = *state;

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Pending\",\"reason\":\"PodsStarting\"}");
    for (int i = 0; i < 2 * WHY_PAGE; i++)
        put_pod_of(p, i, "[]", RUNS);
    put_pod_of(
        p, 9999, "[]",
        "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
        "\"Unschedulable\",\"message\":\"0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\"}]}");
    expect(p, RUN("why", "j", "--all"), RUN("j-node-9999", "Insufficient nvidia.com/gpu"));
    assert_int_equal(fake_log_count(p->server, "LIST", "/pods"), 3);
}

/* So many pods are no job's: a server that always has more does not keep it going. */
static void test_endless_list(void **state)
{
    struct ptj *p = *state;
    char path[128];

    ptj_put_job(p, "j", SPEC, "{\"phase\":\"Running\"}");
    for (int i = 0; i <= WHY_PAGES_MAX * WHY_PAGE; i++) {
        snprintf(path, sizeof(path), CORE "/pods/%d", i);
        assert_true(
            fake_put(p->server, path, "{\"metadata\":{\"labels\":{\"batch.tensorstack.dev/job\":\"j\"}}}"));
    }
    expect(p, RUN("why", "j", "--all"), RUN("Not read: pods: there are more than 2500"));
    assert_int_equal(fake_log_count(p->server, "LIST", "/pods"), WHY_PAGES_MAX);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_log, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_sidecar, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_json, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_json_of_less, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_rights, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_claims_and_events, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_budget, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_place, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_own_names, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_pipe, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_node, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_pages, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_endless_list, begin, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
