/* run.c - torchrun under test. */
#include "run.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "signals.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { WORDS_MAX = 48, OUTPUT_BYTES = 4 << 20, POLLS_MAX = 300000 };

char *run_torchrun;
int run_ignored;

static void redirect(const char *name, int fd)
{
    int f = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (f < 0 || dup2(f, fd) < 0)
        _exit(120);
    close(f);
}

static void become(const struct run *r, const char *const *args, const char *script, int out, int err)
{
    const struct rlimit no_core = {0, 0};
    const char *words[WORDS_MAX] = {run_torchrun};
    int n = 1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signals_default();
    if (run_ignored)
        signal(run_ignored, SIG_IGN);
    setrlimit(RLIMIT_CORE, &no_core);
    for (; *args && n < WORDS_MAX - 4; args++)
        words[n++] = *args;
    if (script) {
        words[n++] = "sh";
        words[n++] = "-c";
        words[n++] = script;
    }
    if (chdir(r->dir) < 0)
        _exit(120);
    if (out < 0)
        redirect("out", STDOUT_FILENO);
    else
        dup2(out, STDOUT_FILENO);
    if (err < 0)
        redirect("err", STDERR_FILENO);
    else
        dup2(err, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0);
    setenv("TMPDIR", r->dir, 1);
    unsetenv("OMP_NUM_THREADS");
    execv(run_torchrun, (char **)(uintptr_t)words);
    _exit(120);
}

void run_start(struct run *r, const char *const *args, const char *script)
{
    run_start_on(r, args, script, -1, -1);
}

void run_start_on(struct run *r, const char *const *args, const char *script, int out, int err)
{
    *r = (struct run){
        .dir = "/tmp/test-torchrun-XXXXXX", .out = BUF_INIT(OUTPUT_BYTES), .err = BUF_INIT(OUTPUT_BYTES)};
    assert_non_null(mkdtemp(r->dir));
    fflush(NULL);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0)
        become(r, args, script, out, err);
}

static void read_file(const struct run *r, const char *name, struct buf *out)
{
    char path[128];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    buf_clear(out);
    if (fs_read(path, out, &err) < 0)
        buf_clear(out);
}

int run_wait(struct run *r)
{
    assert_int_equal(waitpid(r->pid, &r->status, 0), r->pid);
    read_file(r, "out", &r->out);
    read_file(r, "err", &r->err);
    return WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -WTERMSIG(r->status);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void run_release(struct run *r)
{
    buf_release(&r->out);
    buf_release(&r->err);
    assert_int_equal(nftw(r->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int run_once(const char *const *args, const char *script, struct run *keep)
{
    struct run own, *r = keep ? keep : &own;

    run_start(r, args, script);
    int code = run_wait(r);
    if (!keep)
        run_release(r);
    return code;
}

void run_says(const struct buf *text, const char *want)
{
    if (!strstr(buf_str(text), want))
        fail_msg("expected \"%s\" in: %s", want, buf_str(text));
}

void run_blames(const struct run *r, int rank, int code, const char *text)
{
    const char *root = strstr(buf_str(&r->err), "Root Cause (first observed failure):");
    char who[32], how[32] = "";

    snprintf(who, sizeof(who), "  rank      : %d (", rank);
    if (code)
        snprintf(how, sizeof(how), "  exitcode  : %d (", code);
    if (!root || !strstr(root, who) || !strstr(root, how) || !strstr(root, text))
        fail_msg("expected rank %d, code %d and \"%s\" in: %s", rank, code, text, buf_str(&r->err));
}

bool run_has_said(const struct run *r, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(OUTPUT_BYTES);

    read_file(r, "err", &text);
    return strstr(buf_str(&text), want) != NULL;
}

void run_expect(const char *const *args, const char *script, int code, const char *err)
{
    struct run r;

    assert_int_equal(run_once(args, script, &r), code);
    run_says(&r.err, err ? err : "");
    run_release(&r);
}

void run_read(const struct run *r, const char *pattern, struct buf *out)
{
    struct err err = {0};
    char path[200];
    glob_t found;

    snprintf(path, sizeof(path), "%s/%s", r->dir, pattern);
    assert_int_equal(glob(path, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    buf_clear(out);
    assert_int_equal(fs_read(found.gl_pathv[0], out, &err), 0);
    globfree(&found);
}

void run_expect_file(const struct run *r, const char *pattern, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(OUTPUT_BYTES);

    run_read(r, pattern, &text);
    assert_string_equal(buf_str(&text), want);
}

static void tick(void)
{
    const struct timespec ts = {.tv_nsec = 2000000};

    nanosleep(&ts, NULL);
}

bool run_has_file(const struct run *r, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    return access(path, F_OK) == 0;
}

bool run_runs(const struct run *r)
{
    siginfo_t info = {0};

    assert_int_equal(waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return !info.si_pid;
}

bool run_wait_file(const struct run *r, const char *name)
{
    for (int i = 0; i < POLLS_MAX && !run_has_file(r, name) && run_runs(r); i++)
        tick();
    return run_has_file(r, name);
}

void run_wait_threads(const struct run *r)
{
    char path[64];
    int threads = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)r->pid);
    for (int i = 0; i < POLLS_MAX && threads < 2; i++) {
        cleanup_closedir DIR *d = opendir(path);
        threads = -2; /* . and .. */
        while (d && readdir(d))
            threads++;
        tick();
    }
    assert_true(threads >= 2);
}

void run_touch(const struct run *r, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fclose(f);
}

void run_remove(const struct run *r, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    assert_int_equal(unlink(path), 0);
}

int run_read_number(const struct run *r, const char *name)
{
    cleanup_buf struct buf text = BUF_INIT(64);

    read_file(r, name, &text);
    return atoi(buf_str(&text));
}

bool run_gone(pid_t pid)
{
    for (int i = 0; i < POLLS_MAX; i++) {
        if (kill(pid, 0) < 0)
            return true;
        tick();
    }
    return false;
}

int run_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    if (argc != 2 || !(run_torchrun = realpath(argv[1], NULL)))
        return 2;
    const int failed = _cmocka_run_group_tests("torchrun", tests, n, NULL, NULL);
    free(run_torchrun);
    return failed;
}

static bool has_torch(void)
{
    const char *python = getenv("TK_TEST_PYTHON");
    char command[400];

    if (python)
        setenv("PYTHON_EXEC", python, 1);
    snprintf(command, sizeof(command), "'%.300s' -c 'import torch' 2>/dev/null", python ? python : "python3");
    return system(command) == 0;
}

int run_torch_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    if (has_torch())
        return run_main(argc, argv, tests, n);
    printf("skipped: no Python with torch (TK_TEST_PYTHON names one)\n");
    return 77;
}
