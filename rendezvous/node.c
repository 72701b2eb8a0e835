/* node.c - the stages of a node and their transitions; see PROTOCOL.md. */
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
    n->report.phase = phase;
    n->line.dirty = true;
}

static void wait_for(struct node *n, int64_t round, int64_t now_ms)
{
    const struct node_config *c = &n->config;
    struct meeting_node *s = &n->report;
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

/* The round that this node should join next; -1: not known yet. */
static int64_t next_round(const struct node *n)
{
    const struct meeting_state *s = n->state;

    return !s->version ? -1 : s->stage == STAGE_FORMING ? s->round : s->round + 1;
}

/* This node's rank in the running round; -1: not a member. */
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
    const bool begins = rank_of(n) >= 0 && n->state->round == n->wait.round; /* node_begins changes to
                                                                              * NODE_RUNS */

    if (!begins && next_round(n) != n->wait.round)
        wait_for(n, next_round(n), now_ms);
    if (now_ms < node_spare_until_ms(n))
        return;
    n->report.signal = 0;
    say(n, NODE_LEAVING);
    leave(n, NODE_WHY_NO_PLACE, now_ms);
}

static void step_over(struct node *n, int64_t now_ms)
{
    n->over.done = n->over.done || node_is_acknowledged(n) || !node_current(n) ||
                   now_ms >= n->over.until_ms || n->line.lost;
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
        break; /* until node_ranks_ended */
    case NODE_RESTS:
        if (n->state->round > n->run.round)
            wait_for(n, next_round(n), now_ms);
        break;
    case NODE_LEAVES:
        if (node_is_acknowledged(n) || now_ms >= n->leave.until_ms)
            end(n, n->leave.why, true, now_ms);
        break;
    case NODE_OVER:
        step_over(n, now_ms);
        break;
    }
}

void node_step(struct node *n, int64_t now_ms)
{
    n->stepped_ms = now_ms;
    node_check_leader(n, now_ms);
    if (n->stage == NODE_RUNS && n->state->stage == STAGE_ENDED && !n->report.heard_end) {
        n->report.heard_end = 1; /* so that the leader's host need not wait for the ranks here to stop */
        n->line.dirty = true;
    }
    if (n->stage < NODE_OVER && n->stage != NODE_RUNS && n->state->stage == STAGE_ENDED) {
        n->report.heard_end = 1;
        n->line.dirty = n->report.phase != 0;
        end(n, n->stage == NODE_LEAVES ? n->leave.why : NODE_WHY_ENDED, false, now_ms);
    } else if (n->stage < NODE_OVER && n->stage != NODE_RUNS && n->line.lost)
        end(n, n->stage == NODE_LEAVES ? n->leave.why : NODE_WHY_LOST, true, now_ms);
    step_phase(n, now_ms);
}

int64_t node_next_ms(const struct node *n, int64_t now_ms)
{
    const int64_t line = node_line_next_ms(n, now_ms);
    const int64_t until = n->stage == NODE_REACHES                 ? n->reach.until_ms
                          : n->stage == NODE_WAITS                 ? node_spare_until_ms(n)
                          : n->stage == NODE_LEAVES                ? n->leave.until_ms
                          : n->stage == NODE_OVER && !n->over.done ? n->over.until_ms
                                                                   : INT64_MAX;

    return until < line ? until : line;
}

bool node_begins(struct node *n, int *rank)
{
    const int at = rank_of(n);

    if (n->stage != NODE_WAITS || at < 0 || n->state->round != n->wait.round)
        return false;
    const int64_t round = n->wait.round;
    n->stage = NODE_RUNS;
    n->run.round = round;
    n->run.reported = false;
    *rank = at;
    say(n, NODE_RUNNING);
    return true;
}

bool node_must_stop(const struct node *n)
{
    return n->stage == NODE_RUNS &&
           (n->line.lost || n->state->stage == STAGE_ENDED || n->state->round != n->run.round);
}

void node_ranks_ended(struct node *n, bool good)
{
    if (n->stage != NODE_RUNS)
        return;
    n->stage = NODE_RESTS;
    if (n->report.phase == NODE_LEAVING)
        leave(n, NODE_WHY_LEFT, n->stepped_ms);
    else if (good && n->report.phase == NODE_RUNNING)
        say(n, NODE_DONE);
}

void node_failed(struct node *n, const struct meeting_cause *cause)
{
    if ((n->stage != NODE_RUNS && n->stage != NODE_RESTS) || n->run.reported ||
        n->report.phase == NODE_LEAVING)
        return;
    n->run.reported = true;
    n->report.cause = *cause;
    say(n, NODE_FAILED);
}

void node_quiet(struct node *n, bool quiet, int64_t number, int64_t call)
{
    const bool known = n->stage == NODE_RUNS && n->state->round == n->run.round;

    if (n->report.phase != NODE_RUNNING || n->report.quiet == quiet)
        return;
    n->report.quiet = quiet;
    n->report.done = quiet && known ? n->state->done : 0;
    n->report.number = quiet ? number : 0;
    n->report.call = quiet ? call : 0;
    say(n, NODE_RUNNING);
}

void node_report_steps(struct node *n, const struct steps *steps)
{
    n->report.steps = *steps;
}

void node_leave(struct node *n, int signal, int64_t now_ms)
{
    if (n->stage >= NODE_LEAVES || n->report.phase == NODE_LEAVING)
        return;
    if (n->stage == NODE_REACHES) { /* the leader does not know this node */
        end(n, NODE_WHY_LEFT, true, now_ms);
        return;
    }
    n->report.signal = signal;
    say(n, NODE_LEAVING);
    if (n->stage != NODE_RUNS)
        leave(n, NODE_WHY_LEFT, now_ms);
}

bool node_over(const struct node *n)
{
    return n->stage == NODE_OVER && n->over.done;
}
