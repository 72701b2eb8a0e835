/* agent_hang.c - the launcher's main loop when a round hangs: detect it, find the rank that blocks it, and
 * end the round. */
#include "common/clock.h"
#include "common/contract.h"
#include "launcher/agent_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    const struct meeting_state *state = g->meets ? nodes_running(&g->nodes) : NULL;
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
    const struct meeting_state *state = g->meets ? nodes_running(&g->nodes) : NULL;
    int64_t number, call;

    if (state && state->hung)
        return true;
    if (!h->quiet_reported && now_ms < quiet_due_ms(&h->quiet))
        return false;
    look_for_signs(g, now_ms);
    const bool quiet = quiet_look(&h->quiet, now_ms);
    if (!g->meets)
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

static void look_first(struct agent *g, int64_t now_ms)
{
    struct hang *h = &g->hang;

    h->stage = HANG_EXAMINING;
    agent_say(g,
              "torchrun: no progress for %" PRId64 " s: no output of any rank and no other sign of life "
              "(" CONTRACT_ENV_PROGRESS_TIMEOUT "); looking for the rank that holds up the others\n",
              h->limit_ms / 1000);
    agent_look_at_ranks(g);
    h->since_ms = now_ms;
    h->due_ms = now_ms + HANG_LOOK_MS;
}

static void look_again(struct agent *g, int64_t now_ms)
{
    struct hang *h = &g->hang;
    char text[SUSPECT_BYTES];

    for (int i = 0; i < g->round.n; i++) {
        agent_look_again(g, i, now_ms);
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

    nodes_failed(&g->nodes, &w, 0, s, g->host);
}

static void tell(struct agent *g)
{
    struct hang *h = &g->hang;
    const struct meeting_state *state = g->meets ? &g->nodes.view->state : NULL;

    for (int i = 0; i < g->round.n; i++) {
        const struct buf *said = &g->logs.ranks[i].streams[1].tail;
        h->found[i].stack = stack_read((struct sv){buf_str(said), said->len});
        agent_look_last(g, i);
    }
    const struct suspect s = suspect_find(h->found, g->round.n, state ? (uint64_t)state->number : 0,
                                          state ? (uint32_t)state->call : 0);
    snprintf(h->message, sizeof(h->message), "no progress for %" PRId64 " s: %s", h->limit_ms / 1000, s.text);
    h->blamed = s.index;
    agent_say(g, "torchrun: %s%s\n", g->meets ? "on this node: " : "", h->message);
    h->stage = HANG_REPORTED;
    if (g->meets)
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
        const bool ended = agent_abort_ranks(g);
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
