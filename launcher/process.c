/* process.c - fork, make a session, and exec a rank. */
#include "launcher/process.h"
#include "common/fsutil.h"
#include "common/sv.h"
#include "launcher/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 1000, ENVIRON_BYTES = 4 << 20 };

/* In the child: exec the rank, or write errno to `report`. */
static void become(const struct process_spec *spec, int report, pid_t parent)
{
    sigset_t none;

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl */
        _exit(1);
    for (int s = 1; s < NSIG; s++)
        if (s == SIGTERM || sigismember(&spec->ignored, s) != 1)
            signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((spec->out < 0 || dup2(spec->out, STDOUT_FILENO) >= 0) &&
        (spec->err < 0 || dup2(spec->err, STDERR_FILENO) >= 0))
        program_exec(spec->words, spec->env);
    const int code = errno;
    if (write(report, &code, sizeof(code)) < 0)
        _exit(1);
    _exit(1);
}

pid_t process_start(const struct process_spec *spec, struct err *err)
{
    int ends[2];
    const pid_t parent = getpid();

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot create a pipe");
    pid_t pid = fork();
    if (pid == 0)
        become(spec, ends[1], parent);
    int code = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_errno(err, ERR_FATAL, code, "cannot start another process");
    }
    ssize_t n;
    do
        n = read(ends[0], &code, sizeof(code));
    while (n < 0 && errno == EINTR);
    close(ends[0]);
    if (n == 0)
        return pid;
    waitpid(pid, NULL, 0);
    return program_explain(spec->words[0], n == (ssize_t)sizeof(code) ? code : EIO, err);
}

void process_signal_group(pid_t leader, int signal)
{
    kill(-leader, signal);
    if (signal != SIGKILL)
        kill(-leader, SIGCONT);
}

/* The limit 1 turns off core files and also a program that the kernel would pipe the core to, which 0 does not (core(5)). */
void process_abort(pid_t pid)
{
    struct rlimit limit;

    if (prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0 && limit.rlim_max > 0) {
        limit.rlim_cur = 1;
        prlimit(pid, RLIMIT_CORE, &limit, NULL);
    }
    kill(pid, SIGABRT);
    kill(pid, SIGCONT);
}

/* Get this process's children, up to n. */
static int children(pid_t *pids, int n)
{
    char path[64];
    int count = 0, pid;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    cleanup_fclose FILE *f = fopen(path, "re");
    while (f && count < n && fscanf(f, "%d", &pid) == 1)
        pids[count++] = pid;
    return count;
}

/* Whether the process (a folder of /proc) is in this PID namespace and has the variable `mark`. */
static bool is_marked(const char *pid, const char *mark)
{
    cleanup_buf struct buf env = BUF_INIT(ENVIRON_BYTES);
    struct stat here, there;
    struct err ignored;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    if (buf_append(&env, "", 1, &ignored) < 0 || fs_read(path, &env, &ignored) < 0 ||
        !memmem(env.data, env.len, mark, strlen(mark + 1) + 2))
        return false;
    snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
    return stat(path, &there) == 0 && stat("/proc/self/ns/pid", &here) == 0 && here.st_ino == there.st_ino;
}

/* Kill the processes with the variable `mark`; returns how many. */
static int kill_marked(const char *mark)
{
    cleanup_closedir DIR *all = opendir("/proc");
    const struct dirent *entry;
    int n = 0;

    while (all && (entry = readdir(all)))
        if (sv_is_digit(entry->d_name[0]) && is_marked(entry->d_name, mark)) {
            kill(atoi(entry->d_name), SIGKILL);
            n++;
        }
    return n;
}

/* In the guard: wait until the launcher has ended. Every signal wakes the guard; only SIGKILL ends it. */
static void stand_guard(pid_t launcher, const char *mark)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    sigset_t all;

    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || chdir("/") < 0 || syscall(SYS_close_range, 0U, ~0U, 0U) < 0)
        _exit(1);
    while (getppid() == launcher)
        sigwaitinfo(&all, NULL);
    for (int i = 0; i < ROUNDS && kill_marked(mark); i++)
        nanosleep(&pause, NULL);
    _exit(0);
}

void process_guard(const char *variable, const char *value)
{
    const pid_t self = getpid();
    char mark[96] = "";

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(mark + 1, sizeof(mark) - 1, "%s=%s", variable, value);
    if (self != 1 && *value && fork() == 0)
        stand_guard(self, mark);
}

/* The children of a killed child become children of this process, so repeat until there are none. */
void process_sweep(void)
{
    enum { BATCH = 256 };

    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[BATCH];
        int n = children(pids, BATCH);
        for (int i = 0; i < n; i++)
            kill(pids[i], SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (n == 0)
            return;
        const struct timespec pause = {.tv_nsec = round < 10 ? 100000 : 1000000};
        nanosleep(&pause, NULL);
    }
}
