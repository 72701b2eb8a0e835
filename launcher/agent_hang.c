/* agent_hang.c - the launcher's main loop when a round hangs: detect it, find the rank that blocks it, and
 * end the round. */
#include "common/clock.h"
#include "common/contract.h"
#include "launcher/agent_state.h"
#include "launcher/evidence.h"
#include "launcher/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char PROC[] = "/proc";

void agent_hang_open(struct agent *g)
{
    struct hang *h = &g->hang;
    const int n = g->options->nproc;

    h->limit_ms = g->options->progress_timeout_ms;
    if (!h->limit_ms)
        return;
    h->ranks = arena_array(&g->arena, (size_t)n, struct hang_rank);
    h->found = arena_array(&g->arena, (size_t)n, struct suspect_rank);
    g->logs.watches = g->logs.watches_out = g->logs.watches_all = true;
}

void agent_hang_begin(struct agent *g)
{
    struct hang *h = &g->hang;

    if (!h->limit_ms)
        return;
    *h = (struct hang){.limit_ms = h->limit_ms, .ranks = h->ranks, .found = h->found};
    memset(h->ranks, 0, (size_t)g->round.nproc * sizeof(*h->ranks));
    quiet_begin(&h->quiet, h->limit_ms, clock_mono_ms());
}

static void look_for_signs(struct agent *g, int64_t now_ms)
{
    struct hang *h = &g->hang;

    for (int i = 0; i < g->round.n; i++) {
        for (int s = 0; s < LOGS_STREAMS; s++)
            quiet_sign(&h->quiet, g->logs.ranks[i].streams[s].heard_ms);
        if (g->slots && memcmp(&h->ranks[i].seen, &g->slots[i], sizeof(g->slots[i])) != 0) {
            memcpy(&h->ranks[i].seen, &g->slots[i], sizeof(g->slots[i]));
            quiet_sign(&h->quiet, now_ms);
        }
    }
    quiet_sign(&h->quiet, g->tracker.file_ms);
    const struct meeting_state *state = agent_running(g);
    const int64_t ended = g->round.ended + (state ? state->done : 0);
    if (h->ended != ended)
        quiet_sign(&h->quiet, now_ms);
    h->ended = ended;
}

/* Find the last collective call that a rank of this node has begun. */
static void last_call(const struct agent *g, int64_t *number, int64_t *call)
{
    *number = *call = 0;
    for (int i = 0; g->slots && i < g->round.n; i++) {
        const uint64_t begun = atomic_load_explicit(&g->slots[i].begun, memory_order_relaxed);
        const uint32_t kind = atomic_load_explicit(&g->slots[i].last, memory_order_relaxed);
        const int64_t bounded = begun < INT64_MAX / 2 ? (int64_t)begun : INT64_MAX / 2;
        if (bounded > *number) {
            *number = bounded;
            *call = kind < RANK_CALLS ? kind : RANK_CALL_NONE;
        }
    }
}

/* Whether the round hangs. With several nodes the leader decides. */
static bool hangs(struct agent *g, int64_t now_ms)
{
    struct hang *h = &g->hang;
    const struct meeting_state *state = agent_running(g);
    int64_t number, call;

    if (state && state->hung)
        return true;
    if (!h->quiet_reported && now_ms < quiet_due_ms(&h->quiet))
        return false;
    look_for_signs(g, now_ms);
    const bool quiet = quiet_look(&h->quiet, now_ms);
    if (!g->nodes.meet)
        return quiet;
    if (quiet != h->quiet_reported) {
        last_call(g, &number, &call);
        meet_quiet(g->nodes.meet, quiet, number, call);
    }
    h->quiet_reported = quiet;
    return false;
}

static int64_t last_heard_ms(const struct agent *g)
{
    int64_t last = 0;

    for (int i = 0; i < g->round.n; i++)
        if (g->logs.ranks[i].streams[1].heard_ms > last)
            last = g->logs.ranks[i].streams[1].heard_ms;
    return last;
}

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

/* First reading: examine the ranks' processes and fill hang.found. */
static void look_at_ranks(struct agent *g)
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

/* Second reading, HANG_LOOK_MS later: read the CPU time, and whether the process is still in uninterruptible sleep. */
static void look_again_at(struct agent *g, int local, int64_t now_ms)
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

/* Abort the Python processes of ranks, one at a time. True: all have ended. */
static bool abort_ranks(struct agent *g)
{
    bool over = true;

    for (int i = 0; i < g->round.n; i++)
        /* a process in uninterruptible sleep would write no stack */
        over =
            (g->hang.found[i].state == 'D' || abort_next(&g->hang.ranks[i], g->round.workers[i].pid)) && over;
    return over;
}

/* After the stacks are read: a Python process that is still alive without one is in uninterruptible sleep. One that waits
 * for a lost file server sleeps interruptibly until its first signal. */
static void look_last(struct agent *g, int local)
{
    struct suspect_rank *r = &g->hang.found[local];
    struct evidence_process p;

    if (r->stack.known || !g->hang.ranks[local].n || !evidence_read(PROC, r->pid, &p) || p.state != 'D')
        return;
    r->state = 'D';
    evidence_wchan(PROC, r->pid, r->wchan);
}

static void look_first(struct agent *g, int64_t now_ms)
{
    struct hang *h = &g->hang;

    h->stage = HANG_EXAMINING;
    agent_say(g,
              "torchrun: no progress for %" PRId64 " s: no output of any rank and no other sign of life "
              "(" CONTRACT_ENV_PROGRESS_TIMEOUT "); looking for the rank that holds up the others\n",
              h->limit_ms / 1000);
    look_at_ranks(g);
    h->since_ms = now_ms;
    h->due_ms = now_ms + HANG_LOOK_MS;
}

static void look_again(struct agent *g, int64_t now_ms)
{
    struct hang *h = &g->hang;
    char text[SUSPECT_BYTES];

    for (int i = 0; i < g->round.n; i++) {
        look_again_at(g, i, now_ms);
        suspect_describe(&h->found[i], text);
        agent_say(g, "torchrun: %s\n", text);
    }
    for (int i = 0; i < g->round.n; i++)
        g->logs.ranks[i].streams[1].tail.max = HANG_STACK_BYTES;
    round_hang(&g->round, 2 * HANG_STACK_MS);
    h->due_ms = clock_mono_ms() + HANG_STACK_MS; /* the readings may take long on a busy machine */
    h->stage = HANG_ABORTING;
}

static void tell_nodes(struct agent *g, const struct suspect *s)
{
    const struct clock clock = clock_system();
    const struct exit_worker w = {.rank = g->hang.found[s->index].rank,
                                  .local_rank = s->index,
                                  .pid = g->hang.found[s->index].pid,
                                  .status = EXIT_CODE_RETRYABLE << 8,
                                  .wall_ms = clock.wall_ms(clock.ctx),
                                  .message = g->hang.message};

    agent_tell_failure(g, &w, 0, s);
}

static void tell(struct agent *g)
{
    struct hang *h = &g->hang;
    const struct meeting_state *state = g->nodes.meet ? &g->nodes.view->state : NULL;

    for (int i = 0; i < g->round.n; i++) {
        const struct buf *said = &g->logs.ranks[i].streams[1].tail;
        h->found[i].stack = stack_read((struct sv){buf_str(said), said->len});
        look_last(g, i);
    }
    const struct suspect s = suspect_find(h->found, g->round.n, state ? (uint64_t)state->number : 0,
                                          state ? (uint32_t)state->call : 0);
    snprintf(h->message, sizeof(h->message), "no progress for %" PRId64 " s: %s", h->limit_ms / 1000, s.text);
    h->blamed = s.index;
    agent_say(g, "torchrun: %s%s\n", g->nodes.meet ? "on this node: " : "", h->message);
    h->stage = HANG_REPORTED;
    if (g->nodes.meet)
        tell_nodes(g, &s);
}

void agent_hang_step(struct agent *g)
{
    struct hang *h = &g->hang;
    const int64_t now_ms = clock_mono_ms();

    if (!h->limit_ms)
        return;
    if (h->stage <= HANG_EXAMINING && g->round.state != ROUND_RUNNING)
        h->stage = HANG_WATCHING; /* a rank failed, or a signal came: that ends the round */
    else if (h->stage == HANG_WATCHING && hangs(g, now_ms))
        look_first(g, now_ms);
    else if (h->stage == HANG_EXAMINING && now_ms >= h->due_ms)
        look_again(g, now_ms);
    if (h->stage == HANG_ABORTING && g->round.state == ROUND_HUNG) {
        const bool ended = abort_ranks(g);
        /* Their last output is read in the next turn: a launcher that was stopped sees their exit before
         * it. */
        h->ended_ms = !ended || h->aborting ? now_ms : h->ended_ms;
        h->aborting = !ended;
        const int64_t last_ms = last_heard_ms(g) > h->ended_ms ? last_heard_ms(g) : h->ended_ms;
        const bool over = ended && now_ms - last_ms >= HANG_SETTLE_MS;
        if (!over && now_ms < h->due_ms)
            return;
        tell(g);
        round_kill(&g->round);
    }
}

int64_t agent_hang_due_ms(const struct agent *g)
{
    const struct hang *h = &g->hang;

    if (!h->limit_ms || h->stage == HANG_REPORTED || round_over(&g->round))
        return 0;
    if (h->stage == HANG_WATCHING)
        return g->round.state == ROUND_RUNNING ? quiet_due_ms(&h->quiet) : 0;
    return h->stage == HANG_ABORTING ? clock_mono_ms() + HANG_POLL_MS : h->due_ms;
}

bool agent_hang_end(struct agent *g)
{
    struct hang *h = &g->hang;

    if (!h->limit_ms || h->stage < HANG_ABORTING)
        return false;
    if (h->stage == HANG_ABORTING)
        tell(g);
    return true;
}

void agent_hang_blame(struct agent *g)
{
    if (g->hang.limit_ms && g->hang.stage == HANG_REPORTED)
        round_blame(&g->round, g->hang.blamed, EXIT_CODE_RETRYABLE, g->hang.message);
}
