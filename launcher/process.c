/* process.c - fork, make a session, and exec a rank. */
#include "launcher/process.h"
#include "launcher/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In the child: exec the rank, or write errno to `report`. */
static void become(const struct process_spec *spec, int report, pid_t parent)
{
    sigset_t none;

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl */
        _exit(1);
    for (int s = 1; s < NSIG; s++)
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

void process_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
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

/* The children of a killed child become children of this process, so repeat until there are none. */
void process_sweep(void)
{
    enum { ROUNDS = 1000, BATCH = 256 };
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[BATCH];
        int n = children(pids, BATCH);
        for (int i = 0; i < n; i++)
            kill(pids[i], SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (n == 0)
            return;
        nanosleep(&pause, NULL);
    }
}
