/* agent_ranks.c - when a round hangs: examine the ranks' processes, and abort Python processes to get their
 * stacks. */
#include "launcher/agent_state.h"
#include "launcher/evidence.h"
#include "launcher/process.h"

#include <stdio.h>
#include <string.h>

static const char PROC[] = "/proc";

/* The last line that the rank printed, as printable ASCII. */
static void last_line(const struct log_rank *log, char out[static SUSPECT_LINE_BYTES])
{
    const struct log_stream *s = &log->streams[log->streams[1].heard_ms > log->streams[0].heard_ms];
    const char *text = buf_str(&s->tail);
    size_t end = s->tail.len, from;

    while (end && strchr("\r\n \t", text[end - 1]))
        end--;
    for (from = end; from && text[from - 1] != '\n' && text[from - 1] != '\r'; from--)
        ;
    snprintf(out, SUSPECT_LINE_BYTES, "%.*s", (int)(end - from), text + from);
    for (char *c = out; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
}

void agent_look_at_ranks(struct agent *g)
{
    struct hang *h = &g->hang;
    cleanup_arena struct arena a = {0};
    const struct evidence e = evidence_scan(PROC, &a);

    for (int i = 0; i < g->round.n; i++) {
        const struct exit_worker *w = &g->round.workers[i];
        struct suspect_rank *r = &h->found[i];
        struct hang_rank *own = &h->ranks[i];
        struct evidence_process p;
        *r = (struct suspect_rank){.rank = w->rank, .pid = w->pid, .ended = !w->running, .cpu_percent = -1};
        own->n = own->at = 0;
        const pid_t pid = w->running ? evidence_main(&e, PROC, w->pid) : 0;
        if (!pid || !evidence_read(PROC, pid, &p))
            continue;
        r->pid = pid;
        r->state = p.state;
        own->ticks = p.ticks;
        if (evidence_is_python(PROC, pid))
            own->pids[own->n++] = pid;
        own->n += evidence_pythons(&e, PROC, w->pid, pid, own->pids + own->n, HANG_PYTHONS_MAX - own->n);
    }
}

/* Read the CPU time, and whether the process is still in uninterruptible sleep. */
void agent_look_again(struct agent *g, int local, int64_t now_ms)
{
    struct suspect_rank *r = &g->hang.found[local];
    struct evidence_process p;

    if (r->state && evidence_read(PROC, r->pid, &p)) {
        const double used_s = (double)(p.ticks - g->hang.ranks[local].ticks) / (double)sysconf(_SC_CLK_TCK);
        r->cpu_percent = (int)(used_s * 100000 / (double)(now_ms - g->hang.since_ms));
        r->state = p.state == 'D' ? r->state : p.state;
        evidence_wchan(PROC, r->pid, r->wchan);
    }
    if (g->slots)
        memcpy(&r->slot, &g->slots[local], sizeof(r->slot));
    last_line(&g->logs.ranks[local], r->last_line);
}

/* Abort the rank's next Python process once the last one has ended. True: no more are left. */
static bool abort_next(struct hang_rank *r, pid_t session)
{
    struct evidence_process p;

    while (r->at < r->n) {
        const pid_t pid = r->pids[r->at];
        const bool aborted = r->at_aborted;
        if (evidence_read(PROC, pid, &p) && p.session == session) {
            if (!aborted)
                process_abort(pid);
            r->at_aborted = true;
            return false;
        }
        r->at++;
        r->at_aborted = false;
    }
    return true;
}

bool agent_abort_ranks(struct agent *g)
{
    bool over = true;

    for (int i = 0; i < g->round.n; i++)
        /* a process in uninterruptible sleep would write no stack */
        over =
            (g->hang.found[i].state == 'D' || abort_next(&g->hang.ranks[i], g->round.workers[i].pid)) && over;
    return over;
}

/* A process that waits for a lost file server sleeps interruptibly until its first signal. */
void agent_look_last(struct agent *g, int local)
{
    struct suspect_rank *r = &g->hang.found[local];
    struct evidence_process p;

    if (r->stack.known || !g->hang.ranks[local].n || !evidence_read(PROC, r->pid, &p) || p.state != 'D')
        return;
    r->state = 'D';
    evidence_wchan(PROC, r->pid, r->wchan);
}
