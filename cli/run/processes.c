/* processes.c - start a process for each pod, and wait for all of them. */
#include "cli/run/processes.h"

#include "cli/say.h"
#include "common/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_S = 30 };

int processes_become(const struct localpod *pod, struct err *err)
{
    for (int i = 0; i < pod->n_env; i++)
        if (pod->env[i].value && setenv(pod->env[i].name, pod->env[i].value, 1) < 0)
            return err_errno(err, ERR_FATAL, errno, "%.60s", pod->env[i].name), 126;
    signal(SIGPIPE, SIG_DFL); /* main ignores it */
    execvp(pod->argv[0], (char *const *)(uintptr_t)pod->argv);
    const int status = errno == ENOENT ? 127 : 126;
    err_errno(err, ERR_FATAL, errno, "pod %.63s: %.100s", pod->name, pod->argv[0]);
    return status;
}

struct run {
    pid_t pids[PROCESSES_MAX];
    bool ended[PROCESSES_MAX];
    int n, alive;
    bool succeeded;      /* the first pod: what the others do then no longer counts */
    int status;          /* of the first failure; 0: none yet */
    int64_t deadline_ms; /* of the next signal to those that are left; 0: none is due */
    int signal;          /* that is due then */
};

static void kill_all(const struct run *r, int sig)
{
    for (int i = 0; i < r->n; i++)
        if (!r->ended[i])
            kill(r->pids[i], sig);
}

/* End those that are left: now, and by force when their time is over. */
static void end_rest(struct run *r)
{
    kill_all(r, SIGTERM);
    r->signal = SIGKILL;
    r->deadline_ms = clock_mono_ms() + GRACE_S * 1000;
}

static void note_end(struct run *r, int i, int wait_status)
{
    const int status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);

    r->ended[i] = true;
    r->alive--;
    if (r->succeeded || r->status)
        return;
    if (status) {
        r->status = status;
        end_rest(r);
    } else if (i == 0) {
        r->succeeded = true;
        r->signal = SIGTERM;
        r->deadline_ms = clock_mono_ms() + GRACE_S * 1000;
    }
}

static void reap(struct run *r)
{
    int status;

    for (int i = 0; i < r->n; i++)
        if (!r->ended[i] && waitpid(r->pids[i], &status, WNOHANG) == r->pids[i])
            note_end(r, i, status);
}

/* What a terminal sends goes to the whole process group, so only others' signals are passed on. */
static void take_signal(struct run *r, const siginfo_t *info)
{
    if (info->si_signo != SIGCHLD && info->si_code != SI_KERNEL)
        kill_all(r, info->si_signo);
    reap(r);
}

static void on_deadline(struct run *r)
{
    if (r->signal == SIGTERM) {
        end_rest(r);
        return;
    }
    kill_all(r, r->signal);
    r->deadline_ms = 0;
}

static void wait_for_all(struct run *r, const sigset_t *set)
{
    while (r->alive) {
        const int64_t left = r->deadline_ms - clock_mono_ms();
        const struct timespec limit = {.tv_sec = left > 0 ? left / 1000 : 0,
                                       .tv_nsec = left > 0 ? left % 1000 * 1000000 : 0};
        siginfo_t info;
        if (r->deadline_ms && left <= 0)
            on_deadline(r);
        else if ((r->deadline_ms ? sigtimedwait(set, &info, &limit) : sigwaitinfo(set, &info)) > 0)
            take_signal(r, &info);
    }
}

static int start(struct run *r, const struct localpod *pod, const sigset_t *old, struct err *err)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    struct err why;

    if (pid < 0)
        return err_errno(err, ERR_FATAL, errno, "pod %.63s: fork", pod->name);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(126);
        sigprocmask(SIG_SETMASK, old, NULL);
        const int status = processes_become(pod, &why);
        say("kubectl ptj run", "%s", why.msg);
        _exit(status);
    }
    r->pids[r->n++] = pid;
    r->alive++;
    return 0;
}

int processes_run(const struct localpod *pods, int n, struct err *err)
{
    static const int SIGNALS[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct run r = {0};
    sigset_t set, old;
    int failed = 0;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++)
        sigaddset(&set, SIGNALS[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    for (int i = 0; i < n && !failed; i++)
        failed = start(&r, &pods[i], &old, err);
    if (failed)
        end_rest(&r);
    wait_for_all(&r, &set);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return failed ? -1 : r.status;
}
