/* test_proxy_ends.c - what is left of the connection through `kubectl proxy` when it ends: no process, no folder, no descriptor.
 *
 * usage: test_proxy_ends <kubectl-ptj>
 */
#include "test.h"

#include "ptj.h"

#include "cli/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 600000 };

#define RUNNING "{\"phase\":\"Running\"}"

static const char *self;

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    ptj_put_job(&p, "bert", "{}", RUNNING);
    /* Whoever is left behind becomes a child of this process. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    *state = &p;
    return 0;
}

static const char *command_of(pid_t pid)
{
    static char words[256];
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    const int fd = open(path, O_RDONLY);
    const ssize_t n = read(fd, words, sizeof(words) - 1);
    close(fd);
    words[n > 0 ? n : 0] = '\0';
    return words;
}

/* Of the proxy that was started first, or first after forget_proxy. */
static pid_t proxys_pid(const struct ptj *p)
{
    return (pid_t)atoi(ptj_text(p, "started"));
}

static void forget_proxy(const struct ptj *p)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/started", p->dir);
    assert_int_equal(unlink(path), 0);
}

/* Wait for the end of a process that became a child of this one. */
static void await_end(pid_t pid)
{
    for (int i = 0; i < PATIENCE; i++) {
        const pid_t ended = waitpid(pid, NULL, WNOHANG);
        if (ended == pid || (ended < 0 && kill(pid, 0) < 0)) /* ours, or of a script that waited for it */
            return;
        assert_true(ended == 0 || errno == ECHILD);
        usleep(1000);
    }
    fail_msg("the proxy outlives kubectl-ptj");
}

static void test_nothing_stays(void **state)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP, SIGKILL};
    struct ptj *p = *state;
    const pid_t lives = ptj_start(p, RUN("watch", "bert"));

    ptj_await(p, "started", "proxy");
    const pid_t proxy_of_it = proxys_pid(p);
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        forget_proxy(p);
        const pid_t pid = ptj_start(p, RUN("watch", "bert"));
        ptj_await(p, "started", "proxy");
        fake_settle(p->server);
        assert_int_equal(ptj_folders(p), 2);
        kill(pid, SIGNALS[i]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        await_end(proxys_pid(p));
        assert_int_equal(ptj_folders(p), SIGNALS[i] == SIGKILL ? 2 : 1);
    }
    /* The next one removes what the killed one left, and not what is in use. */
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    assert_int_equal(ptj_folders(p), 1);
    assert_int_equal(kill(proxy_of_it, 0), 0);
    kill(lives, SIGTERM);
    assert_int_equal(waitpid(lives, NULL, 0), lives);
    await_end(proxy_of_it);
    assert_int_equal(ptj_folders(p), 0);
}

/* The proxy ends before this process becomes kubectl: afterwards nobody would remove the folder. */
static void test_ended_before_kubectl(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "on", "{\"tensorboardSpec\":{}}", "{\"tensorboard\":{\"ready\":true}}");
    ptj_expect(p, RUN("tensorboard", "on"), 0, "kubectl --namespace team port-forward", NULL);
    assert_int_equal(kill(proxys_pid(p), 0), -1);
    assert_int_equal(ptj_folders(p), 0);
}

/* `test_proxy_ends --serve SOCKET FILE`: what `kubectl proxy` is where $KUBECTL is a script that waits for it. */
static int serve(const char *at, const char *file)
{
    struct ptj p = {.server = fake_apiserver_start_at(at)};
    FILE *pid = fopen(file, "w");

    fake_add_kind(p.server, "/apis/batch.tensorstack.dev/v1beta1", "pytorchtrainingjobs",
                  "PyTorchTrainingJob");
    ptj_put_job(&p, "bert", "{}", RUNNING);
    if (!pid || fprintf(pid, "%d proxy\n", (int)getpid()) < 0 || fclose(pid) != 0)
        return 1;
    printf("Starting to serve on %s\n", at);
    fflush(stdout);
    for (;;)
        pause();
}

/* The script's end is not the proxy's, which holds the user's credentials. */
static void test_a_script_that_waits(void **state)
{
    static const char SCRIPT[] =
        "#!/bin/sh\n"
        "case \"$*\" in\n"
        "*'config view'*) printf team ;;\n"
        "*) '%s' --serve \"${*##*--unix-socket=}\" \"${0%%/*}/started\"; echo ended >&2 ;;\n"
        "esac\n";
    struct ptj *p = *state;
    char path[128], text[1024];

    snprintf(path, sizeof(path), "%s/script", p->dir);
    snprintf(text, sizeof(text), SCRIPT, self);
    ptj_script(path, text);
    p->kubectl = path;
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    await_end(proxys_pid(p));
    for (int i = 0; i < 2; i++) {
        forget_proxy(p);
        const pid_t pid = ptj_start(p, RUN("watch", "bert"));
        ptj_await(p, "started", "proxy");
        kill(pid, i ? SIGKILL : SIGTERM);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        if (i == 0)
            await_end(proxys_pid(p));
    }
    /* Nobody could end that one but the next of us. */
    p->kubectl = NULL;
    snprintf(text, sizeof(text), "%s", ptj_text(p, "started"));
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    await_end((pid_t)atoi(text));
    assert_int_equal(ptj_folders(p), 0);
}

/* Who listened may have ended, and its number be another process's: that one has no socket of ours among its words. */
static void test_somebody_elses_number(void **state)
{
    struct ptj *p = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char folder[64];
    int status;

    snprintf(folder, sizeof(folder), "%.40s/kubectl-ptj-XXXXXX", p->dir);
    assert_non_null(mkdtemp(folder));
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", folder);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (listen(fd, 1) == 0)
            execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    close(fd);
    while (!strstr(command_of(pid), "sleep"))
        usleep(1000);
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    assert_int_equal(ptj_folders(p), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* From now on flock fails as where a file system has no locks. */
static void refuse_locks(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {ARRAY_LEN(code), code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(2);
}

static void refuse_files(void)
{
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_NOFILE, &none) < 0)
        _exit(2);
}

/* A folder without a lock would be taken for a dead one's; and if the lock of a folder cannot be tested, its state is unknown. */
static void test_no_locks(void **state)
{
    static const struct {
        void (*refuse)(void);
        const char *why;
    } REFUSALS[] = {{refuse_locks, "No locks available"}, {refuse_files, "Too many open files"}};
    struct ptj *p = *state;
    struct socketdir live, none;
    struct err err;
    int status;

    assert_int_equal(setenv("XDG_RUNTIME_DIR", p->dir, 1), 0);
    assert_int_equal(socketdir_make(&live, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(REFUSALS); i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            REFUSALS[i].refuse();
            if (socketdir_make(&none, &err) == 0 || !strstr(err.msg, REFUSALS[i].why) ||
                !strstr(err.msg, "XDG_RUNTIME_DIR may name another"))
                fprintf(stderr, "%s\n", err.msg);
            else
                _exit(0);
            _exit(1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(ptj_folders(p), 1);
    }
    assert_int_equal(access(live.path, F_OK), 0);
    socketdir_remove(&live);
    assert_int_equal(ptj_folders(p), 0);
}

/* `test_proxy_ends proxy ...`: kubectl is a program that leaves another one behind, which can still write. */
static int leave_one(void)
{
    char path[128];

    if (fork() == 0) {
        snprintf(path, sizeof(path), "%s/started", getenv("XDG_RUNTIME_DIR"));
        FILE *f = fopen(path, "w");
        if (!f || fprintf(f, "%d proxy\n", (int)getpid()) < 0 || fclose(f) != 0)
            return 1;
    }
    for (;;)
        pause();
}

/* In a child: no descriptors are left for the second pipe of the second kubectl. */
static int start_without_room(const struct ptj *p)
{
    char *words[] = {(char *)(uintptr_t) "kubectl-ptj", (char *)(uintptr_t) "watch",
                     (char *)(uintptr_t) "bert", NULL};
    const struct rlimit few = {8, 8};
    struct kubectl_proxy proxy;
    struct args a;
    struct err err;

    close_range(STDERR_FILENO + 1, ~0U, 0);
    if (setrlimit(RLIMIT_NOFILE, &few) < 0 || args_parse(&a, 3, words, &err) < 0 ||
        kubectl_proxy_start(&proxy, &a, &err) == 0 || !strstr(err.msg, "kubectl: pipe: Too many open files"))
        return 1;
    ptj_await(p, "started", "proxy");
    kubectl_proxy_end(&proxy);
    args_release(&a);
    return open("/dev/null", O_RDONLY) != STDERR_FILENO + 1 || open("/dev/null", O_RDONLY) < 0 ||
           open("/dev/null", O_RDONLY) < 0 || open("/dev/null", O_RDONLY) < 0 ||
           open("/dev/null", O_RDONLY) < 0;
}

/* It ends all the same, and nothing stays open. */
static void test_no_second_one(void **state)
{
    struct ptj *p = *state;
    int status;

    p->kubectl = self;
    ptj_environment(p);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(start_without_room(p));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    kill(proxys_pid(p), SIGKILL);
    assert_int_equal(status, 0);
    await_end(proxys_pid(p));
    assert_int_equal(ptj_folders(p), 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--serve"))
        return serve(argv[2], argv[3]);
    if (argc > 1 && !strcmp(argv[1], "proxy"))
        return leave_one();

    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_stays, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_ended_before_kubectl, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_a_script_that_waits, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_somebody_elses_number, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_no_locks, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_no_second_one, begin, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    self = argv[0];
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
