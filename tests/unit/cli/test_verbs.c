/* test_verbs.c - the short verbs of kubectl-ptj, and how it fails: no server, no job, no permission, a full disk.
 *
 * usage: test_verbs <kubectl-ptj>
 */
#include "test.h"

#include "ptj.h"

#include "common/cleanup.h"

#include <string.h>
#include <unistd.h>

static bool is_suspended(struct ptj *p)
{
    cJSON *job = fake_json(p->server, PTJ_JOBS "/a");
    bool suspended = cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetObjectItem(job, "spec"), "suspend"));

    cJSON_Delete(job);
    return suspended;
}

static void test_suspend_and_resume(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "a", "{\"runMode\":{\"pause\":{\"enabled\":true}}}", "{}");
    ptj_expect(p, RUN("suspend", "a"), 0, "a suspended", NULL);
    assert_true(is_suspended(p));
    ptj_expect(p, RUN("resume", "a", "-n", "team"), 0, "a resumed", NULL);
    assert_false(is_suspended(p));
    cJSON *job = fake_json(p->server, PTJ_JOBS "/a");
    assert_false(cJSON_IsTrue(cJSON_GetObjectItem(
        cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(job, "spec"), "runMode"), "pause"),
        "enabled")));
    cJSON_Delete(job);
}

/* A suspend or resume without effect reports that, and writes nothing. */
static void test_suspend_in_vain(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "done", "{}", "{\"phase\":\"Succeeded\"}");
    ptj_put_job(p, "broken", "{\"suspend\":true}", "{\"phase\":\"Failed\"}");
    ptj_put_job(p, "runs", "{}", "{\"phase\":\"Running\"}");
    ptj_put_job(p, "waits", "{\"suspend\":true}", "{\"phase\":\"Paused\"}");
    ptj_put_job(p, "paused", "{\"runMode\":{\"pause\":{\"enabled\":true}}}", "{\"phase\":\"Paused\"}");
    ptj_expect(p, RUN("suspend", "done"), 1, NULL, "done has ended (Succeeded): it cannot be suspended");
    ptj_expect(p, RUN("resume", "done"), 1, NULL, "done has ended (Succeeded): it cannot be resumed");
    ptj_expect(p, RUN("resume", "broken"), 1, NULL, "broken has ended (Failed): it cannot be resumed");
    ptj_expect(p, RUN("resume", "runs"), 0, "runs is not suspended", NULL);
    ptj_expect(p, RUN("suspend", "waits"), 0, "waits is suspended already", NULL);
    assert_int_equal(fake_log_count(p->server, "PATCH", NULL), 0);
    ptj_expect(p, RUN("suspend", "paused"), 0, "paused suspended", NULL);
    ptj_expect(p, RUN("suspend", "runs"), 0, "runs suspended", NULL);
}

static void test_scale(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "a", "{}", "{}");
    ptj_put_job(p, "e", "{\"elastic\":{\"enabled\":true,\"minReplicas\":1,\"maxReplicas\":4}}", "{}");
    ptj_expect(p, RUN("scale", "a", "2"), 1, NULL, "a is not elastic");
    ptj_expect(p, RUN("scale", "e", "5"), 1, NULL, "kubectl ptj scale: PODS: expected 1..4");
    ptj_expect(p, RUN("scale", "e", "many"), 2, NULL, "kubectl ptj scale: PODS: expected an integer");
    ptj_expect(p, RUN("scale", "e", "3"), 0, "e scaled to 3 pods", NULL);
    cJSON *job = fake_json(p->server, PTJ_JOBS "/e");
    assert_int_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(job, "spec"), "elastic"),
                                         "expectedReplicas")
                         ->valueint,
                     3);
    cJSON_Delete(job);
}

static void test_failures(void **state)
{
    /* Answers with 403 about something else: a quota, a policy, --as. */
    static const char *const NO_PERMISSION[] = {
        "pytorchtrainingjobs \"a\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1",
        "admission webhook \"team.example.com\" denied the request: the label cost-centre is missing",
        "users \"you\" is forbidden: User \"me\" cannot impersonate resource \"users\" in API group \"\"",
        "users \"you\" is forbidden: User \"me\" cannot impersonate:user-info resource \"users\""};
    struct ptj *p = *state;

    ptj_expect(p, RUN("suspend", "none"), 1, NULL, "there is no training job \"none\" in namespace team\n");
    ptj_put_job(p, "a", "{}", "{}");
    fake_plan_fault(p->server, &(struct fake_fault_plan){.writes = true, PTJ_FORBIDDEN});
    ptj_expect(
        p, RUN("suspend", "a"), 1, NULL,
        "you lack the permission to patch pytorchtrainingjobs.batch.tensorstack.dev in namespace team");
    for (size_t i = 0; i < ARRAY_LEN(NO_PERMISSION); i++) {
        fake_plan_fault(p->server, &(struct fake_fault_plan){
                                       .fault = FAKE_STATUS, .status = 403, .message = NO_PERMISSION[i]});
        ptj_expect(p, RUN("suspend", "a"), 1, NULL, NO_PERMISSION[i]);
    }
    fake_plan_fault(p->server, &(struct fake_fault_plan){.fault = FAKE_DROP_BEFORE});
    ptj_expect(p, RUN("suspend", "a"), 1, NULL, "kubectl ptj suspend: API server: GET /apis/");
    fake_plan_fault(p->server, NULL);
    ptj_expect(p, RUN("suspend", "a", "--context", "none"), 1, NULL,
               "error: context \"none\" does not exist\n"
               "kubectl ptj suspend: no connection: kubectl ended with exit status 1 before it served\n");
}

/* Whichever of several writes failed, and whether anything is left to be written at the end. */
static void test_full_disk(void **state)
{
    static const char *const SHELL[] = {"exec \"$0\" man >/dev/full",
                                        "exec \"$0\" convert in.yaml >/dev/full",
                                        "exec \"$0\" suspend a >/dev/full"};
    struct ptj *p = *state;
    const char *program = p->program;

    ptj_put_job(p, "a", "{}", "{}");
    assert_int_equal(chdir(TK_SOURCE_DIR "/tests/golden/convert/list-and-others"), 0);
    p->program = "/bin/sh";
    for (size_t i = 0; i < ARRAY_LEN(SHELL); i++)
        ptj_expect(p, RUN("-c", SHELL[i], program), 1, NULL,
                   "kubectl ptj: stdout: No space left on device\n");
    p->program = program;
}

static void test_command_line(void **state)
{
    struct ptj *p = *state;

    ptj_expect(p, RUN("--version"), 0, "kubectl-ptj (Torchkeeper) ", NULL);
    ptj_expect(p, RUN("--help"), 0, "watch          follow all jobs, or one, as they train", NULL);
    ptj_expect(p, RUN("scale", "--help"), 0, "kubectl ptj scale [OPTIONS] NAME PODS", NULL);
    ptj_expect(p, RUN("help"), 0, "watch          follow all jobs, or one, as they train", NULL);
    ptj_expect(p, RUN("help", "scale"), 0, "kubectl ptj scale [OPTIONS] NAME PODS", NULL);
    ptj_expect(p, RUN("version"), 0, "kubectl-ptj (Torchkeeper) ", NULL);
    ptj_expect(p, RUN("describe", "a"), 2, NULL,
               "kubectl ptj: describe: unknown verb; type kubectl ptj why NAME, or kubectl describe "
               "ptj NAME\n");
    ptj_expect(p, RUN("get"), 2, NULL, "kubectl ptj: get: unknown verb; type kubectl get ptj\n");
    ptj_expect(p, RUN("sclae"), 2, NULL, "unknown verb; did you mean scale?");
    ptj_expect(p, RUN("scale", "e"), 2, NULL, "expected NAME PODS");
    assert_int_equal(fake_log_count(p->server, NULL, NULL), 0);
}

/* A wrong command line is named as such, whatever the connection. */
static void test_wrong_usage_needs_no_kubectl(void **state)
{
    static const char *const LINES[][6] = {
        {"watch", "a", "--timeout", "5"},
        {"watch", "a", "--all-namespaces"},
        {"watch", "a", "--until=finished", "--timeout=soon"},
        {"watch", "-n", "a b"},
        {"logs", "a", "--grep", "("},
        {"logs", "a", "--rank", "x"},
        {"logs", "a", "--since", "x"},
        {"debug", "a", "--rank=0", "--pod=a"},
        {"scale", "a", "many"},
        {"submit", TK_SOURCE_DIR "/README.md"},
        {"submit", "none.py"},
        {"submit", TK_SOURCE_DIR "/README.md", "--image=i", "--cpu=many"},
        {"submit", TK_SOURCE_DIR "/README.md", "--image=i", "--follow", "--dry-run"},
    };
    struct ptj *p = *state;

    p->kubectl = "/nonexistent";
    for (size_t i = 0; i < ARRAY_LEN(LINES); i++)
        ptj_expect(p, LINES[i], 2, NULL, LINES[i][0]);
    ptj_expect(p, RUN("submit", "none.py", "--image=i"), 1, NULL, "none.py: No such file");
    ptj_expect(p, RUN("watch"), 1, NULL, "/nonexistent");
}

static void expect_lists(struct ptj *p, const char *const *args, bool connection, bool ns)
{
    struct ptj_result r = ptj_run(p, args);

    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "--version"));
    assert_int_equal(strstr(r.out, "--kubeconfig") != NULL, connection);
    assert_int_equal(strstr(r.out, "--context") != NULL, connection);
    assert_int_equal(strstr(r.out, "--namespace") != NULL, ns);
    ptj_forget(&r);
}

/* What needs no API server has no options of a connection: not in the help, not for Tab, not on the command line. */
static void test_without_connection(void **state)
{
    static const char *const OFFLINE[] = {"convert", "completion", "man"};
    struct ptj *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(OFFLINE); i++) {
        expect_lists(p, RUN(OFFLINE[i], "--help"), false, false);
        expect_lists(p, RUN("__complete", "--", OFFLINE[i], "--"), false, false);
        ptj_expect(p, RUN(OFFLINE[i], "--context=c"), 2, NULL, "--context: unknown option (kubectl ptj ");
    }
    expect_lists(p, RUN("run", "--help"), false, true);
    expect_lists(p, RUN("watch", "--help"), true, true);
    expect_lists(p, RUN("--help"), true, true);
    expect_lists(p, RUN("__complete", "--", "watch", "--"), true, true);
    ptj_expect(p, RUN("--context=c", "-n", "team", "convert", "/nowhere/f"), 1, NULL, "/nowhere/f");
    ptj_expect(p, RUN("man"), 0, "Verbs that need the API server have these, too:", NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_suspend_and_resume, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_suspend_in_vain, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_full_disk, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_scale, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_failures, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_command_line, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_usage_needs_no_kubectl, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_without_connection, ptj_setup, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
