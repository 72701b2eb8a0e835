/* test_proxy.c - the connection through `kubectl proxy`: what it is given, what it says, and that nothing of it stays.
 *
 * usage: test_proxy <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "cli/proxy.h"
#include "cli/session.h"
#include "cli/watch/display.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "kube/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 60000, COLUMNS = 100, ROWS = 12 };

static const char *self;

#define RUNNING(percent)                                                                                     \
    "{\"phase\":\"Running\",\"progress\":{\"time\":\"2026-11-24T11:59:50Z\",\"percent\":" percent            \
    ",\"loss\":0.5}}"

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    ptj_put_job(&p, "bert", "{}", RUNNING("47"));
    /* Whoever is left behind becomes a child of this process. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    *state = &p;
    return 0;
}

static bool is_there(const struct ptj *p, const char *file)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    return access(path, F_OK) == 0;
}

/* All that the file has; "": it is not there. */
static const char *text_of(const struct ptj *p, const char *file)
{
    static char text[1 << 16];
    cleanup_buf struct buf b = BUF_INIT(sizeof(text) - 1);
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    snprintf(text, sizeof(text), "%s", fs_read(path, &b, &err) == 0 ? buf_str(&b) : "");
    return text;
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

static void await(const struct ptj *p, const char *file, const char *text)
{
    for (int i = 0; i < PATIENCE && !strstr(text_of(p, file), text); i++)
        usleep(1000);
    assert_non_null(strstr(text_of(p, file), text));
}

static void make(const struct ptj *p, const char *file)
{
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    assert_int_equal(fs_write_atomic(path, "", 0, &err), 0);
}

static void put_script(const char *path, const char *body)
{
    char text[1024];
    struct err err;

    snprintf(text, sizeof(text), "#!/bin/sh\n%s", body);
    assert_int_equal(fs_write_atomic(path, text, strlen(text), &err), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static pid_t proxys_pid(const struct ptj *p)
{
    return (pid_t)atoi(text_of(p, "started"));
}

static size_t folders(const struct ptj *p)
{
    char pattern[128];
    struct stat st;
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/kubectl-ptj-*", p->dir);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    const size_t n = found.gl_pathc;
    assert_int_equal(stat(found.gl_pathv[0], &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    globfree(&found);
    return n;
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
    if (!strstr(text_of(p, "started"), GIVEN))
        fail_msg("%s", text_of(p, "started"));
    ptj_expect(p, RUN("suspend", "bert", "--context"), 2, NULL, "--context: expected a value");
    assert_int_equal(folders(p), 0);
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
    put_script(path, "chmod 0644 \"$0\"; ln -s \"${0%/*}/api\" \"${*##*--unix-socket=}\"\n"
                     "echo 'Starting to serve'; exec sleep 1000\n");
    ptj_expect(p, RUN("tensorboard", "on", "-n", "team"), 1, "",
               "/kubectl, which this needs: Permission denied");
    p->kubectl = "/bin/true";
    ptj_expect(p, RUN("suspend", "bert"), 1, NULL, "kubectl ended with exit status 0 before it served");
    assert_int_equal(folders(p), 0);
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
    assert_int_equal(folders(p), 0);
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
               "kubectl ptj suspend: API server: dial tcp 10.0.0.1:6443: connect: connection refused\n");
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

/* What it says in the middle of a screen stands behind it, and not in it. */
static void test_it_speaks_later(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    ptj_kubectl(p, "(cd \"${0%/*}\"; until [ -e speak ]; do sleep 0.01; done; echo E1125 proxy_server.go:1 "
                   ">&2; : >spoken) &");
    onpty_start(&t, p, RUN("watch"), COLUMNS, ROWS);
    onpty_until(&t, "47%");
    make(p, "speak");
    await(p, "started", "proxy");
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
    assert_int_equal(folders(p), 0);
}

/* A credential plug-in asks before the first answer: the terminal is the user's until then. */
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
    await(p, "word", "got open");
    while (onpty_read(&t, 2 * DISPLAY_FRAME_MS))
        continue;
    assert_int_equal(t.vt.page, 0);
    onpty_keys(&t, "\x03");
    assert_int_equal(onpty_wait(&t), 128 + SIGINT);
    onpty_end(&t);
    assert_int_equal(folders(p), 0);
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
    const pid_t lives = ptj_start(p, RUN("wait", "bert"));

    await(p, "started", "proxy");
    const pid_t proxy_of_it = proxys_pid(p);
    for (size_t i = 0; i < ARRAY_LEN(SIGNALS); i++) {
        char file[128];
        snprintf(file, sizeof(file), "%s/started", p->dir);
        assert_int_equal(unlink(file), 0);
        const pid_t pid = ptj_start(p, RUN("wait", "bert"));
        await(p, "started", "proxy");
        fake_settle(p->server);
        assert_int_equal(folders(p), 2);
        kill(pid, SIGNALS[i]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        await_end(proxys_pid(p));
        assert_int_equal(folders(p), SIGNALS[i] == SIGKILL ? 2 : 1);
    }
    /* The next one removes what the killed one left, and not what is in use. */
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    assert_int_equal(folders(p), 1);
    assert_int_equal(kill(proxy_of_it, 0), 0);
    kill(lives, SIGTERM);
    assert_int_equal(waitpid(lives, NULL, 0), lives);
    await_end(proxy_of_it);
    assert_int_equal(folders(p), 0);
}

/* Ended before kubectl takes our place: nobody would remove the folder then. */
static void test_ended_before_kubectl(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "on", "{\"tensorboardSpec\":{}}", "{\"tensorboard\":{\"ready\":true}}");
    ptj_expect(p, RUN("tensorboard", "on"), 0, "kubectl --namespace team port-forward", NULL);
    assert_int_equal(kill(proxys_pid(p), 0), -1);
    assert_int_equal(folders(p), 0);
}

/* `test_proxy --serve SOCKET FILE`: what `kubectl proxy` is where $KUBECTL is a script that waits for it. */
static int serve(const char *at, const char *file)
{
    struct ptj p = {.server = fake_apiserver_start_at(at)};
    FILE *pid = fopen(file, "w");

    fake_add_kind(p.server, "/apis/batch.tensorstack.dev/v1beta1", "pytorchtrainingjobs",
                  "PyTorchTrainingJob");
    ptj_put_job(&p, "bert", "{}", RUNNING("47"));
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
    put_script(path, text);
    p->kubectl = path;
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    await_end(proxys_pid(p));
    for (int i = 0; i < 2; i++) {
        make(p, "started");
        const pid_t pid = ptj_start(p, RUN("wait", "bert"));
        await(p, "started", "proxy");
        kill(pid, i ? SIGKILL : SIGTERM);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        if (i == 0)
            await_end(proxys_pid(p));
    }
    /* Nobody could end that one but the next of us. */
    p->kubectl = NULL;
    snprintf(text, sizeof(text), "%s", text_of(p, "started"));
    ptj_expect(p, RUN("suspend", "bert"), 0, "bert suspended", NULL);
    await_end((pid_t)atoi(text));
    assert_int_equal(folders(p), 0);
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
    assert_int_equal(folders(p), 0);
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

/* A folder without a lock would be taken for a dead one's; and of a folder whose lock cannot be asked for nothing is known. */
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
        assert_int_equal(folders(p), 1);
    }
    assert_int_equal(access(live.path, F_OK), 0);
    socketdir_remove(&live);
    assert_int_equal(folders(p), 0);
}

/* `test_proxy proxy ...`: kubectl is a program that leaves another one behind, which can still write. */
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
    char *words[] = {(char *)(uintptr_t) "kubectl-ptj", (char *)(uintptr_t) "wait",
                     (char *)(uintptr_t) "bert", NULL};
    const struct rlimit few = {8, 8};
    struct kubectl_proxy proxy;
    struct args a;
    struct err err;

    close_range(STDERR_FILENO + 1, ~0U, 0);
    alarm(PATIENCE / 1000);
    if (setrlimit(RLIMIT_NOFILE, &few) < 0 || args_parse(&a, 3, words, &err) < 0 ||
        kubectl_proxy_start(&proxy, &a, &err) == 0 || !strstr(err.msg, "kubectl: pipe: Too many open files"))
        return 1;
    await(p, "started", "proxy");
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
    assert_int_equal(folders(p), 0);
}

static int64_t limits_ms[2]; /* of the request that was sent last: whole, and without a byte */

int __real_endpoint_setup(const struct endpoint *e, const struct kube_http_request *r, CURL *easy,
                          struct err *err);
int __wrap_endpoint_setup(const struct endpoint *e, const struct kube_http_request *r, CURL *easy,
                          struct err *err);
int __wrap_endpoint_setup(const struct endpoint *e, const struct kube_http_request *r, CURL *easy,
                          struct err *err)
{
    limits_ms[0] = r->timeout_ms;
    limits_ms[1] = r->idle_timeout_ms;
    return __real_endpoint_setup(e, r, easy, err);
}

static void expect_limit(struct ptj *p, bool on_terminal, int64_t first_ms)
{
    char *words[] = {(char *)(uintptr_t) "kubectl-ptj", (char *)(uintptr_t) "wait",
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

/* Whoever is asked for a password may take longer than a server may; the first request is the verb's own. */
static void test_time_for_a_login(void **state)
{
    struct ptj *p = *state;

    ptj_environment(p);
    expect_limit(p, false, KUBE_TRANSPORT_TIMEOUT_MS);
    expect_limit(p, true, 0);
    assert_int_equal(limits_ms[1], 0);
}

/* Only what the verb asks for. */
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

    await(p, "out", "47%");
    kill(proxys_pid(p), SIGKILL);
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
    if (argc == 4 && !strcmp(argv[1], "--serve"))
        return serve(argv[2], argv[3]);
    if (argc > 1 && !strcmp(argv[1], "proxy"))
        return leave_one();

    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_it_is_given, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_none_is_started, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_server_away, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_it_speaks_later, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_it_asks, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_stays, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_ended_before_kubectl, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_a_script_that_waits, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_somebody_elses_number, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_no_locks, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_no_second_one, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_time_for_a_login, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_requests_on_a_terminal, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_it_ends, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_which_kubectl, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_namespace, begin, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    self = argv[0];
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
