/* test_proxy.c - the connection through `kubectl proxy`: its arguments, its output, its time limits.
 *
 * usage: test_proxy <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "cli/proxy.h"
#include "cli/session.h"
#include "cli/watch/display.h"
#include "common/fsutil.h"
#include "kube/endpoint.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 600000, COLUMNS = 100, ROWS = 12 };

#define RUNNING(percent)                                                                                     \
    "{\"phase\":\"Running\",\"progress\":{\"time\":\"2026-11-24T11:59:50Z\",\"percent\":" percent            \
    ",\"loss\":0.5}}"

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    ptj_put_job(&p, "bert", "{}", RUNNING("47"));
    *state = &p;
    return 0;
}

static bool is_there(const struct ptj *p, const char *file)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    return access(path, F_OK) == 0;
}

static void make(const struct ptj *p, const char *file)
{
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    assert_int_equal(fs_write_atomic(path, "", 0, &err), 0);
}

static void test_what_it_is_given(void **state)
{
    static const char *const GIVEN =
        " --context=c --as=me --as-group=a --as-group=b c --insecure-skip-tls-verify "
        "--disable-compression=false --server=https://h:1/k8s --token= proxy --append-server-path "
        "--reject-paths=^$ "
        "--unix-socket=/";
    struct ptj *p = *state;

    ptj_expect(p,
               RUN("suspend", "bert", "--context=c", "--as", "me", "--as-group=a", "--as-group", "b c",
                   "--insecure-skip-tls-verify", "--disable-compression=false", "-s", "https://h:1/k8s",
                   "--token="),
               0, "bert suspended", NULL);
    if (!strstr(ptj_text(p, "started"), GIVEN))
        fail_msg("%s", ptj_text(p, "started"));
    ptj_expect(p, RUN("suspend", "bert", "--context"), 2, NULL, "--context: expected a value");
    assert_int_equal(ptj_folders(p), 0);
}

/* $KUBECTL, else the first of $PATH. */
static void test_which_kubectl(void **state)
{
    struct ptj *p = *state;
    char path[256], program[512];

    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", p->dir);
    snprintf(program, sizeof(program), "%s", p->program);
    assert_int_equal(setenv("PATH", path, 1), 0);
    p->program = "/usr/bin/env";
    ptj_expect(p, RUN("-u", "KUBECTL", program, "suspend", "bert"), 0, "bert suspended", NULL);
    p->program = program;
    p->kubectl = "/nowhere/kubectl";
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL, "kubectl, which this needs: No such file");
    p->kubectl = p->dir;
    snprintf(path, sizeof(path), "%s, which this needs: Permission denied ($KUBECTL or $PATH)", p->dir);
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL, path);
    snprintf(path, sizeof(path), "%s/kubectl", p->dir);
    assert_int_equal(chmod(path, 0644), 0);
    p->kubectl = path;
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL, "/kubectl, which this needs: Permission denied");
    /* It serves, and cannot take our place. */
    ptj_put_job(p, "on", "{\"tensorboardSpec\":{}}", "{\"tensorboard\":{\"ready\":true}}");
    ptj_script(path, "#!/bin/sh\n"
                     "chmod 0644 \"$0\"; ln -s \"${0%/*}/api\" \"${*##*--unix-socket=}\"\n"
                     "echo 'Starting to serve'; exec sleep 1000\n");
    ptj_expect(p, RUN("tensorboard", "on", "-n", "team"), 1, "",
               "/kubectl, which this needs: Permission denied");
    p->kubectl = "/bin/true";
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL, "kubectl ended with exit status 0 before it served");
    assert_int_equal(ptj_folders(p), 0);
}

static void test_none_is_started(void **state)
{
    struct ptj *p = *state;

    p->kubectl = "/nowhere/kubectl";
    ptj_expect(p, RUN("--version"), 0, "kubectl-ptj", NULL);
    ptj_expect(p, RUN("watch", "--help"), 0, "--kubeconfig", NULL);
    ptj_expect(p, RUN("completion", "bash"), 0, "_kubectl_ptj", NULL);
    ptj_expect(p, RUN("run", "/nowhere/f"), 1, NULL, "/nowhere/f");
    ptj_expect(p, RUN("convert", "/nowhere/f"), 1, NULL, "/nowhere/f");
    ptj_expect(p, RUN("submit", "/nowhere/f", "--image=i", "--dry-run"), 1, NULL, "/nowhere/f");
    assert_int_equal(ptj_folders(p), 0);
}

/* kubectl's own answer where the API server gives none. */
static void test_server_away(void **state)
{
    static const struct fake_fault_plan AWAY = {.fault = FAKE_STATUS,
                                                .text = true,
                                                .status = 500,
                                                .message =
                                                    "dial tcp 10.0.0.1:6443: connect: connection refused\n"};
    static const struct fake_fault_plan BROKEN = {.fault = FAKE_STATUS, .status = 500};
    struct ptj *p = *state;
    struct onpty t;

    fake_plan_fault(p->server, &AWAY);
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL,
               "kubectl ptj suspend: API server: dial tcp 10.0.0.1:6443: connect: connection refused"
               "; its address is in: kubectl config view --minify\n");
    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    assert_int_equal(onpty_wait(&t), 1);
    onpty_until(&t,
                "kubectl ptj watch: API server: list pytorchtrainingjobs: dial tcp 10.0.0.1:6443: connect");
    onpty_end(&t);
    fake_plan_fault(p->server, &BROKEN);
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL,
               "suspend: a fault was asked for (HTTP 500 InternalError)\n");
    /* It goes away, and comes back. */
    fake_plan_fault(p->server, NULL);
    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(&t, "47%");
    fake_plan_fault(p->server, &AWAY);
    fake_close_watches(p->server);
    onpty_until(&t, "trying again: API server: list pytorchtrainingjobs: dial tcp 10.0.0.1:");
    fake_plan_fault(p->server, NULL);
    onpty_while(&t, "trying again");
    onpty_end(&t);
}

/* kubectl's stderr during a screen is printed after the screen, not inside it. */
static void test_it_speaks_later(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    ptj_kubectl(p, "(cd \"${0%/*}\"; until [ -e speak ]; do sleep 0.01; done; echo E1125 proxy_server.go:1 "
                   ">&2; : >spoken) &");
    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(&t, "47%");
    make(p, "speak");
    ptj_await(p, "started", "proxy");
    for (int i = 0; i < PATIENCE && !is_there(p, "spoken"); i++)
        usleep(1000);
    ptj_put_job(p, "bert", "{}", RUNNING("48"));
    onpty_until(&t, "48%");
    char *screen = vt_text(&t.vt);
    assert_null(strstr(screen, "E1125"));
    free(screen);
    onpty_keys(&t, "q");
    assert_int_equal(onpty_wait(&t), 0);
    onpty_until(&t, "E1125 proxy_server.go:1");
    onpty_until(&t, "48%");
    onpty_end(&t);
    assert_int_equal(ptj_folders(p), 0);
}

/* A credential plug-in prompts before the first answer: until then the verb leaves the terminal to it. */
static void test_it_asks(void **state)
{
    static const struct fake_fault_plan HANGS = {.fault = FAKE_HANG_BEFORE};
    struct ptj *p = *state;
    struct onpty t;

    ptj_kubectl(p, "printf 'Password: ' >&2; read -r word; echo \"got $word\" >\"${0%/*}/word\"");
    fake_plan_fault(p->server, &HANGS);
    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(&t, "Password:");
    assert_int_equal(t.vt.page, 0);
    assert_true(onpty_is_sane(&t));
    onpty_keys(&t, "open\n");
    ptj_await(p, "word", "got open");
    while (onpty_read(&t, 2 * DISPLAY_FRAME_MS))
        continue;
    assert_int_equal(t.vt.page, 0);
    onpty_keys(&t, "\x03");
    assert_int_equal(onpty_wait(&t), 128 + SIGINT);
    onpty_end(&t);
    assert_int_equal(ptj_folders(p), 0);
}

static int64_t limits_ms[2]; /* of the request that was sent last: whole, and without a byte */

int __real_endpoint_setup(const struct kube_config *c, const char *agent, const struct kube_http_request *r,
                          CURL *easy, struct err *err);
int __wrap_endpoint_setup(const struct kube_config *c, const char *agent, const struct kube_http_request *r,
                          CURL *easy, struct err *err);
int __wrap_endpoint_setup(const struct kube_config *c, const char *agent, const struct kube_http_request *r,
                          CURL *easy, struct err *err)
{
    limits_ms[0] = r->timeout_ms;
    limits_ms[1] = r->idle_timeout_ms;
    return __real_endpoint_setup(c, agent, r, easy, err);
}

static void expect_limit(struct ptj *p, bool on_terminal, int64_t first_ms)
{
    char *words[] = {(char *)(uintptr_t) "kubectl-ptj", (char *)(uintptr_t) "watch",
                     (char *)(uintptr_t) "bert", NULL};
    const int was = dup(STDIN_FILENO);
    int terminal, tty, none = open("/dev/null", O_RDONLY);
    struct session s;
    struct args a;
    struct err err;

    assert_int_equal(openpty(&terminal, &tty, NULL, NULL, NULL), 0);
    assert_int_equal(dup2(on_terminal ? tty : none, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(args_parse(&a, 3, words, &err), 0);
    assert_int_equal(session_open(&s, &a, &err), 0);
    assert_int_equal(session_job(&s, "bert", NULL, &err), 0);
    assert_int_equal(limits_ms[0], first_ms);
    assert_int_equal(session_job(&s, "bert", NULL, &err), 0);
    assert_int_equal(limits_ms[0], KUBE_TRANSPORT_TIMEOUT_MS);
    session_close(&s);
    args_release(&a);
    assert_int_equal(dup2(was, STDIN_FILENO), STDIN_FILENO);
    close(was);
    close(none);
    close(tty);
    close(terminal);
    assert_int_equal(fake_log_count(p->server, NULL, NULL), 2);
    fake_log_clear(p->server);
}

/* A user who is prompted for a password has no time limit. The first request is the verb's own. */
static void test_time_for_a_login(void **state)
{
    struct ptj *p = *state;

    ptj_environment(p);
    expect_limit(p, false, KUBE_TRANSPORT_TIMEOUT_MS);
    expect_limit(p, true, 0);
    assert_int_equal(limits_ms[1], 0);
}

/* Only the requests of the verb. */
static void test_requests_on_a_terminal(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    onpty_start(&t, p, RUN("suspend", "bert"), COLUMNS, ROWS);
    assert_int_equal(onpty_wait(&t), 0);
    onpty_end(&t);
    assert_int_equal(fake_log_count(p->server, NULL, NULL), 2);
}

/* It is ended by somebody else. */
static void test_it_ends(void **state)
{
    struct ptj *p = *state;
    const pid_t pid = ptj_start(p, RUN("watch"));

    ptj_await(p, "out", "47%");
    kill((pid_t)atoi(ptj_text(p, "started")), SIGKILL);
    fake_plan_fault(p->server, &(struct fake_fault_plan){.fault = FAKE_DROP_BEFORE});
    fake_close_watches(p->server);
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(r.err, "kubectl proxy, through which requests go, has ended"));
    ptj_forget(&r);
}

static void test_namespace(void **state)
{
    struct ptj *p = *state;
    char ns[KUBECTL_PROXY_NS_BYTES], path[128];
    struct err err;

    ptj_expect(p, RUN("suspend", "none-such", "-n", "other"), 1, NULL, "in namespace other");
    unsetenv("KUBERNETES_SERVICE_HOST");
    snprintf(path, sizeof(path), "%s/namespace", p->dir);
    assert_int_equal(fs_write_atomic(path, "of-the-pod\n", 11, &err), 0);
    kubectl_proxy_namespace("team", p->dir, ns);
    assert_string_equal(ns, "team");
    kubectl_proxy_namespace("", p->dir, ns);
    assert_string_equal(ns, "default");
    assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1), 0);
    kubectl_proxy_namespace("", p->dir, ns);
    assert_string_equal(ns, "of-the-pod");
    kubectl_proxy_namespace("team\n", p->dir, ns);
    assert_string_equal(ns, "team");
    kubectl_proxy_namespace("", "/nowhere", ns);
    assert_string_equal(ns, "default");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_it_is_given, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_none_is_started, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_server_away, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_it_speaks_later, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_it_asks, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_time_for_a_login, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_requests_on_a_terminal, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_it_ends, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_which_kubectl, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_namespace, begin, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
