/* node.c - the phases of a node; PROTOCOL.md describes them. */
#include "rendezvous/node.h"
#include "common/memory.h"
#include "rendezvous/node_line.h"

#include <stdio.h>
#include <stdlib.h>

void node_init(struct node *n, const struct node_config *c, int64_t now_ms)
{
    *n = (struct node){.config = *c, .stage = NODE_REACHES, .stepped_ms = now_ms};
    n->reach.until_ms = now_ms + c->join_ms;
    n->state = memory_must(calloc(1, sizeof(*n->state)));
}

void node_release(struct node *n)
{
    free(n->state);
    n->state = NULL;
}

static void say(struct node *n, enum node_phase phase)
{
    n->say.phase = phase;
    n->line.dirty = true;
}

static void wait_for(struct node *n, int64_t round, int64_t now_ms)
{
    const struct node_config *c = &n->config;
    struct meeting_node *s = &n->say;
    const struct meeting_node before = *s;

    n->stage = NODE_WAITS;
    n->wait.round = round;
    n->wait.until_ms = now_ms + c->join_ms;
    *s = (struct meeting_node){.round = round,
                               .beat = before.beat,
                               .nproc = c->nproc,
                               .wanted = c->wanted,
                               .port = c->port,
                               .cause = {.rank = -1, .local_rank = -1}};
    snprintf(s->addr, sizeof(s->addr), "%s", before.addr);
    snprintf(s->role, sizeof(s->role), "%s", c->role);
    say(n, NODE_JOINING);
}

static void leave(struct node *n, enum node_why why, int64_t now_ms)
{
    n->stage = NODE_LEAVES;
    n->leave.until_ms = now_ms + NODE_FAREWELL_MS;
    n->leave.why = why;
}

static void end(struct node *n, enum node_why why, bool done, int64_t now_ms)
{
    n->stage = NODE_OVER;
    n->over.until_ms = now_ms + NODE_FAREWELL_MS;
    n->over.why = why;
    n->over.done = done;
}

/* Which round a node that is in none is to join; -1: that is not known yet. */
static int64_t next_round(const struct node *n)
{
    const struct meeting_state *s = n->state;

    return !s->version ? -1 : s->stage == STAGE_FORMING ? s->round : s->round + 1;
}

/* This node's rank in the round that runs; -1: it is no member. */
static int rank_of(const struct node *n)
{
    const struct meeting_state *s = n->state;

    for (int64_t i = 0; s->stage == STAGE_RUNNING && i < s->n; i++)
        if (s->members[i].ticket == n->ticket)
            return (int)i;
    return -1;
}

int64_t node_spare_until_ms(const struct node *n)
{
    const bool spare =
        n->stage == NODE_WAITS && n->state->stage == STAGE_RUNNING && n->wait.round > n->state->round;

    return spare ? n->wait.until_ms : INT64_MAX;
}

static void step_waiting(struct node *n, int64_t now_ms)
{
    const bool begins = rank_of(n) >= 0 && n->state->round == n->wait.round; /* node_begins takes it */

    if (!begins && next_round(n) != n->wait.round)
        wait_for(n, next_round(n), now_ms);
    if (now_ms < node_spare_until_ms(n))
        return;
    n->say.signal = 0;
    say(n, NODE_LEAVING);
    leave(n, NODE_WHY_NO_PLACE, now_ms);
}

static void step_over(struct node *n, int64_t now_ms)
{
    n->over.done =
        n->over.done || node_was_heard(n) || !node_current(n) || now_ms >= n->over.until_ms || n->line.lost;
}

static void step_phase(struct node *n, int64_t now_ms)
{
    switch (n->stage) {
    case NODE_REACHES:
        if (n->ticket && n->state->version)
            wait_for(n, next_round(n), now_ms);
        else if (n->line.keyless)
            end(n, NODE_WHY_NO_KEY, true, now_ms);
        else if (now_ms >= n->reach.until_ms)
            end(n, NODE_WHY_NOT_REACHED, true, now_ms);
        break;
    case NODE_WAITS:
        step_waiting(n, now_ms);
        break;
    case NODE_RUNS:
        break; /* until node_rested */
    case NODE_RESTS:
        if (n->state->round > n->run.round)
            wait_for(n, next_round(n), now_ms);
        break;
    case NODE_LEAVES:
        if (node_was_heard(n) || now_ms >= n->leave.until_ms)
            end(n, n->leave.why, true, now_ms);
        break;
    case NODE_OVER:
        step_over(n, now_ms);
        break;
    }
}

void node_step(struct node *n, int64_t now_ms)
{
    if (n->due_ms && now_ms - n->due_ms > NODE_PAUSE_MS)
        node_excuse_line(n, now_ms - n->due_ms, now_ms);
    n->due_ms = 0;
    n->stepped_ms = now_ms;
    node_judge_line(n, now_ms);
    if (n->stage == NODE_RUNS && n->state->stage == STAGE_ENDED && !n->say.heard_end) {
        n->say.heard_end = 1; /* the host need not wait until the ranks here have stopped */
        n->line.dirty = true;
    }
    if (n->stage < NODE_OVER && n->stage != NODE_RUNS && n->state->stage == STAGE_ENDED) {
        n->say.heard_end = 1;
        n->line.dirty = n->say.phase != 0;
        end(n, n->stage == NODE_LEAVES ? n->leave.why : NODE_WHY_ENDED, false, now_ms);
    } else if (n->stage < NODE_OVER && n->stage != NODE_RUNS && n->line.lost)
        end(n, n->stage == NODE_LEAVES ? n->leave.why : NODE_WHY_LOST, true, now_ms);
    step_phase(n, now_ms);
}

int64_t node_next_ms(const struct node *n, int64_t now_ms)
{
    /* So late that half an interval of a pause is not seen. */
    int64_t first = now_ms + n->config.keep_alive_ms / 2, line = node_line_next_ms(n, now_ms);
    const int64_t until = n->stage == NODE_REACHES                 ? n->reach.until_ms
                          : n->stage == NODE_WAITS                 ? node_spare_until_ms(n)
                          : n->stage == NODE_LEAVES                ? n->leave.until_ms
                          : n->stage == NODE_OVER && !n->over.done ? n->over.until_ms
                                                                   : INT64_MAX;

    first = line < first ? line : first;
    return until < first ? until : first;
}

bool node_begins(struct node *n, int *rank)
{
    const int at = rank_of(n);

    if (n->stage != NODE_WAITS || at < 0 || n->state->round != n->wait.round)
        return false;
    const int64_t round = n->wait.round;
    n->stage = NODE_RUNS;
    n->run.round = round;
    n->run.told = false;
    *rank = at;
    say(n, NODE_RUNNING);
    return true;
}

bool node_must_stop(const struct node *n)
{
    return n->stage == NODE_RUNS &&
           (n->line.lost || n->state->stage == STAGE_ENDED || n->state->round != n->run.round);
}

void node_rested(struct node *n, bool good)
{
    if (n->stage != NODE_RUNS)
        return;
    n->stage = NODE_RESTS;
    if (n->say.phase == NODE_LEAVING)
        leave(n, NODE_WHY_LEFT, n->stepped_ms);
    else if (good && n->say.phase == NODE_RUNNING)
        say(n, NODE_DONE);
}

void node_failed(struct node *n, const struct meeting_cause *cause)
{
    if ((n->stage != NODE_RUNS && n->stage != NODE_RESTS) || n->run.told || n->say.phase == NODE_LEAVING)
        return;
    n->run.told = true;
    n->say.cause = *cause;
    say(n, NODE_FAILED);
}

void node_quiet(struct node *n, bool quiet, int64_t number, int64_t call)
{
    const bool known = n->stage == NODE_RUNS && n->state->round == n->run.round;

    if (n->say.phase != NODE_RUNNING || n->say.quiet == quiet)
        return;
    n->say.quiet = quiet;
    n->say.done = quiet && known ? n->state->done : 0;
    n->say.number = quiet ? number : 0;
    n->say.call = quiet ? call : 0;
    say(n, NODE_RUNNING);
}

void node_steps(struct node *n, const struct steps *steps)
{
    n->say.steps = *steps;
}

void node_leave(struct node *n, int signal, int64_t now_ms)
{
    if (n->stage >= NODE_LEAVES || n->say.phase == NODE_LEAVING)
        return;
    if (n->stage == NODE_REACHES) { /* nobody knows it */
        end(n, NODE_WHY_LEFT, true, now_ms);
        return;
    }
    n->say.signal = signal;
    say(n, NODE_LEAVING);
    if (n->stage != NODE_RUNS)
        leave(n, NODE_WHY_LEFT, now_ms);
}

bool node_over(const struct node *n)
{
    return n->stage == NODE_OVER && n->over.done;
}
