/* test_program.c - the program itself: it works on a job, leaves when told, and says what is wrong with its
 * flags.
 *
 * usage: test_program <ptj-operator>
 */
#include "common/fsutil.h"
#include "lab.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

static pid_t start(const char *out_path, char *const *args)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execv(program, args);
        _exit(127);
    }
    return pid;
}

static int exit_code(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_says(const char *path, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(fs_read(path, &text, &err), 0);
    if (!strstr(buf_str(&text), want))
        fail_msg("expected \"%s\" in:\n%s", want, buf_str(&text));
}

static void test_flags(void **state)
{
    const char *dir = *state;
    char out[256];
    char help[] = "--help";
    char bad[] = "--leader-elect=maybe";
    char server[] = "--server=http://127.0.0.1:1";
    char missing[] = "--token-file=/nonexistent/token";
    char name[] = "ptj-operator";

    snprintf(out, sizeof(out), "%s/out", dir);
    assert_int_equal(exit_code(start(out, (char *[]){name, help, NULL})), 0);
    assert_says(out, "SIGTERM");
    assert_int_equal(exit_code(start(out, (char *[]){name, bad, NULL})), 2);
    assert_says(out, "expected true or false");
    assert_int_equal(exit_code(start(out, (char *[]){name, server, missing, NULL})), 1);
    assert_says(out, "/nonexistent/token");
}

static void add_job(struct fake_apiserver *server, const char *name)
{
    char path[200];
    char text[512];

    snprintf(path, sizeof(path), "%.*s%s", (int)strlen(LAB_JOB) - 1, LAB_JOB, name);
    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"" TRAINJOB_API_VERSION "\",\"kind\":\"" TRAINJOB_KIND
             "\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\"},\"spec\":{\"replicaSpecs\":[{\"type\":"
             "\"node\",\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}]}}",
             name);
    assert_true(fake_put(server, path, text));
}

static struct fake_apiserver *start_server(void)
{
    struct fake_apiserver *server = fake_apiserver_start();

    fake_add_kind(server, "/apis/" TRAINJOB_API_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    return server;
}

/* An operator whose log is dir/out_name. */
static pid_t start_operator(const struct fake_apiserver *api, const char *dir, const char *out_name,
                            const char *last_flag)
{
    char out[256];
    char server[64];
    char flag[64];
    char metrics[] = "--metrics-bind-address=127.0.0.1:0";
    char health[] = "--health-probe-bind-address=127.0.0.1:0";
    char name[] = "ptj-operator";

    snprintf(out, sizeof(out), "%s/%s", dir, out_name);
    snprintf(server, sizeof(server), "--server=%s", fake_apiserver_url(api));
    snprintf(flag, sizeof(flag), "%s", last_flag);
    return start(out, (char *[]){name, server, metrics, health, flag, NULL});
}

static void assert_goes_on(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, WNOHANG) == pid)
        fail_msg("it should have gone on running");
    usleep(5000);
}

static void until_pods(struct fake_apiserver *server, pid_t pid, int n)
{
    while (fake_count(server, LAB_PODS) < n)
        assert_goes_on(pid);
    assert_int_equal(fake_count(server, LAB_PODS), n);
}

static void until_says(const char *path, pid_t pid, const char *want)
{
    for (;;) {
        cleanup_buf struct buf text = BUF_INIT(1 << 20);
        struct err err;
        if (fs_read(path, &text, &err) == 0 && strstr(buf_str(&text), want))
            return;
        assert_goes_on(pid);
    }
}

static bool job_is_pending(struct fake_apiserver *server)
{
    cleanup_free char *text = fake_get(server, LAB_JOB);

    return text && strstr(text, "\"Pending\"") && fake_count(server, LAB_PODS) == 1;
}

static void test_works_and_leaves(void **state)
{
    const char *dir = *state;
    struct fake_apiserver *server = start_server();
    char out[256];

    snprintf(out, sizeof(out), "%s/out", dir);
    add_job(server, "j");
    pid_t pid = start_operator(server, dir, "out", "--leader-elect=false");
    while (!job_is_pending(server))
        assert_goes_on(pid);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(exit_code(pid), 0);
    assert_says(out, "\"stopped\"");
    assert_int_equal(fake_count(server, LAB_PODS), 1); /* the job goes on without it */
    assert_int_equal(fake_log_count(server, NULL, "/leases"), 0);
    fake_apiserver_stop(server);
}

/* An Event that waits ten seconds for its next try when SIGTERM comes is sent all the same. */
static void test_events_are_sent_before_it_leaves(void **state)
{
    const char *dir = *state;
    struct fake_apiserver *server = start_server();

    fake_plan_fault(
        server,
        &(struct fake_fault_plan){
            .request = 1, .method = "POST", .path_part = "/events", .fault = FAKE_STATUS, .status = 500});
    add_job(server, "j");
    pid_t pid = start_operator(server, dir, "out", "--leader-elect=false");
    while (fake_faults_done(server) == 0)
        assert_goes_on(pid);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(exit_code(pid), 0);
    assert_true(fake_count(server, "/api/v1/namespaces/ns/events") > 0);
    fake_apiserver_stop(server);
}

/* A person presses Ctrl-C twice while the API server answers nothing: it still leaves at its own deadline. */
static void test_second_signal_while_a_request_hangs(void **state)
{
    const char *dir = *state;
    struct fake_apiserver *server = start_server();
    char out[256];

    snprintf(out, sizeof(out), "%s/out", dir);
    add_job(server, "j");
    fake_plan_fault(server, &(struct fake_fault_plan){.method = "PATCH", .fault = FAKE_HANG_BEFORE});
    pid_t pid = start_operator(server, dir, "out", "--leader-elect=false");
    while (fake_faults_done(server) == 0)
        assert_goes_on(pid);
    assert_int_equal(kill(pid, SIGTERM), 0);
    until_says(out, pid, "SIGTERM");
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(exit_code(pid), 0);
    assert_says(out, "SIGINT");
    assert_says(out, "\"stopped\"");
    fake_apiserver_stop(server);
}

/* Two of them: the second one waits, then takes over as soon as the first one left. */
static void test_one_works_at_a_time(void **state)
{
    const char *dir = *state;
    struct fake_apiserver *server = start_server();
    char second[256];

    snprintf(second, sizeof(second), "%s/second", dir);
    add_job(server, "j");
    pid_t a = start_operator(server, dir, "out", "--leader-elect-namespace=sys");
    while (!job_is_pending(server))
        assert_goes_on(a);
    pid_t b = start_operator(server, dir, "second", "--leader-elect-namespace=sys");
    until_says(second, b, "waiting for the lease");
    add_job(server, "k");
    until_pods(server, a, 2);
    assert_int_equal(kill(a, SIGTERM), 0);
    assert_int_equal(exit_code(a), 0);
    add_job(server, "l");
    until_pods(server, b, 3);
    assert_says(second, "\"leading\"");
    cleanup_free char *lease =
        fake_get(server, "/apis/coordination.k8s.io/v1/namespaces/sys/leases/torchkeeper-operator");
    assert_non_null(lease);
    assert_non_null(strstr(lease, "\"leaseTransitions\":1"));
    assert_int_equal(kill(b, SIGTERM), 0);
    assert_int_equal(exit_code(b), 0);
    fake_apiserver_stop(server);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/test_program.XXXXXX";
    char path[256];
    struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_flags, dir),
        cmocka_unit_test_prestate(test_works_and_leaves, dir),
        cmocka_unit_test_prestate(test_events_are_sent_before_it_leaves, dir),
        cmocka_unit_test_prestate(test_second_signal_while_a_request_hangs, dir),
        cmocka_unit_test_prestate(test_one_works_at_a_time, dir),
    };

    if (argc != 2 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: test_program <ptj-operator>\n");
        return 2;
    }
    program = argv[1];
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const FILES[] = {"out", "second"};
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, FILES[i]);
        unlink(path);
    }
    rmdir(dir);
    return failed;
}
