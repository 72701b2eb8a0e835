/* round.c - the state machine of one start of all ranks; round.h documents the states. */
#include "launcher/round.h"
#include "common/clock.h"
#include "launcher/agent.h"
#include "launcher/process.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static int64_t wall_ms(void)
{
    struct clock c = clock_system();

    return c.wall_ms(c.ctx);
}

void round_init(struct round *r, int nproc, int64_t shutdown_timeout_ms, struct arena *a)
{
    *r = (struct round){.workers = arena_array(a, (size_t)nproc, struct exit_worker),
                        .nproc = nproc,
                        .state = ROUND_OVER,
                        .shutdown_timeout_ms = shutdown_timeout_ms};
}

void round_begin(struct round *r)
{
    memset(r->workers, 0, (size_t)r->nproc * sizeof(*r->workers));
    *r = (struct round){
        .workers = r->workers, .nproc = r->nproc, .shutdown_timeout_ms = r->shutdown_timeout_ms};
}

void round_started(struct round *r, int local, int rank, pid_t pid, const char *error_file)
{
    r->workers[local] = (struct exit_worker){
        .rank = rank, .local_rank = local, .pid = pid, .running = true, .error_file = error_file};
    r->n = local + 1;
}

static void signal_all(struct round *r, int signal)
{
    for (int i = 0; i < r->n; i++)
        if (r->workers[i].running || r->workers[i].lingers) {
            r->workers[i].stopped_by_us = r->workers[i].stopped_by_us || r->workers[i].running;
            process_signal_group(r->workers[i].pid, signal);
        }
}

/* The part of the shutdown timeout that ROUND_WAITING uses. */
static int64_t wait_ms(const struct round *r)
{
    return r->shutdown_timeout_ms < 2 * AGENT_ROOT_CAUSE_MS ? r->shutdown_timeout_ms / 2
                                                            : AGENT_ROOT_CAUSE_MS;
}

static void stop(struct round *r, int signal)
{
    const int64_t since_ms = r->state == ROUND_WAITING ? r->deadline_ms - wait_ms(r) : clock_mono_ms();

    r->state = ROUND_STOPPING;
    r->deadline_ms = since_ms + r->shutdown_timeout_ms;
    signal_all(r, signal);
}

void round_kill(struct round *r)
{
    r->state = ROUND_KILLED;
    r->deadline_ms = clock_mono_ms() + AGENT_KILL_GRACE_MS;
    signal_all(r, SIGKILL);
}

void round_stop(struct round *r, int signal)
{
    if (r->state == ROUND_RUNNING || r->state == ROUND_WAITING)
        stop(r, signal);
}

void round_hang(struct round *r, int timeout_ms)
{
    r->state = ROUND_HUNG;
    r->deadline_ms = clock_mono_ms() + timeout_ms;
    for (int i = 0; i < r->n; i++)
        r->workers[i].stopped_by_us = r->workers[i].stopped_by_us || r->workers[i].running;
}

void round_blame(struct round *r, int local, int code, const char *message)
{
    struct exit_worker *w = &r->workers[local];

    w->wall_ms = w->running || !w->wall_ms ? wall_ms() : w->wall_ms;
    w->running = w->stopped_by_us = false; /* one in uninterruptible sleep has not been reaped */
    w->status = code << 8;
    w->message = message;
    w->hung = true;
    w->error_file = NULL; /* the message is not from the error file */
    r->failed = true;
}

static int find(const struct round *r, pid_t pid)
{
    for (int i = 0; i < r->n; i++)
        if (r->workers[i].running && r->workers[i].pid == pid)
            return i;
    return -1;
}

/* Whether the process group still has children of this process; reaps those that have exited. waitid sees
 * only own children, so a foreign group that reuses the number has no effect. */
static bool group_lives(pid_t leader)
{
    siginfo_t info;

    while (waitid(P_PGID, (id_t)leader, &info, WEXITED | WNOHANG) == 0) {
        if (info.si_pid == 0)
            return true;
    }
    return false;
}

static void ended(struct round *r, int i, int status)
{
    struct exit_worker *w = &r->workers[i];

    w->running = false;
    if (!w->raised || !w->stopped_by_us || status == 0)
        w->status = status;
    w->order = w->raised ? 0 : ++r->ended;
    w->wall_ms = wall_ms();
    if (!w->stopped_by_us && status != 0)
        r->failed = true;
    if (!group_lives(w->pid))
        return;
    /* Children left in the process group. After a success they may continue; after a failure the launcher
     * kills them. Those of a stopped rank may still save their work, so the round waits for them. It sends
     * them SIGTERM, because they may have missed the first signal: shells let background processes ignore
     * SIGINT and SIGQUIT, and a process may have started after the signal. */
    r->workers[i].lingers = w->stopped_by_us;
    if (w->stopped_by_us && r->state == ROUND_STOPPING)
        process_signal_group(w->pid, SIGTERM);
    if (!w->stopped_by_us && status != 0)
        process_signal_group(w->pid, SIGKILL);
}

void round_reap(struct round *r)
{
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        int i = find(r, pid);
        if (i >= 0)
            ended(r, i, status);
    }
    for (int i = 0; i < r->n; i++)
        if (r->workers[i].lingers && !group_lives(r->workers[i].pid))
            r->workers[i].lingers = false;
}

static bool any_left(const struct round *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->workers[i].running || r->workers[i].lingers)
            return true;
    return false;
}

void round_step(struct round *r)
{
    const bool late = r->deadline_ms && clock_mono_ms() >= r->deadline_ms;
    int unsure;

    if (!any_left(r))
        r->state = ROUND_OVER;
    const int root = exit_root_cause(r->workers, r->n, &unsure);
    const bool sure = !unsure && !r->workers[root].running;
    switch (r->state) {
    case ROUND_RUNNING:
        if (r->failed && sure)
            stop(r, SIGTERM);
        else if (r->failed) {
            r->state = ROUND_WAITING;
            r->deadline_ms = clock_mono_ms() + wait_ms(r);
        }
        break;
    case ROUND_WAITING:
        if (sure || late)
            stop(r, SIGTERM);
        break;
    case ROUND_HUNG:
    case ROUND_STOPPING:
        if (late)
            round_kill(r);
        break;
    case ROUND_KILLED:
        if (late)
            r->state = ROUND_OVER;
        break;
    case ROUND_OVER:
        break;
    }
}

bool round_over(const struct round *r)
{
    return r->state == ROUND_OVER;
}
