/* quorum.c - the state machine that forms rounds; quorum.h documents the stages. */
#include "rendezvous/quorum.h"
#include "host/rank_contract.h"
#include "rendezvous/quorum_slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- decide from the members' states that a round hangs, and choose among their suspects */

/* If all members that are not done are quiet, set state.hung, once per round, and return true. If more
 * members are done than state.done says, update state.done instead: the others then restart their hang
 * timeout. quorum_expire handles lost members. */
static bool quorum_hang_begins(struct quorum *q, int64_t now_ms)
{
    struct meeting_state *state = &q->state;
    int64_t quiet = 0, done = 0, number = 0, call = 0;

    for (int i = 0; i < q->n && !state->hung; i++) {
        const struct quorum_slot *s = &q->slots[i];
        const bool runs = quorum_in_round(q, s, NODE_RUNNING), ended = quorum_in_round(q, s, NODE_DONE);
        /* A node that was lost after it was done still counts as done. */
        if ((s->gone && !ended) || (!runs && !ended) || !s->member)
            continue;
        if (runs && !(s->node.quiet && s->node.done == state->done))
            return false;
        done += ended;
        if (!runs)
            continue;
        quiet++;
        if (s->node.number > number) {
            number = s->node.number;
            call = s->node.call;
        }
    }
    if (!quiet || quiet + done < state->n)
        return false;
    if (done > state->done) { /* a node that becomes done is progress: the others restart their timeout */
        state->done = done;
        state->version++;
        return true;
    }
    state->hung = 1;
    state->number = number;
    state->call = call;
    state->version++;
    q->hang_ms = now_ms + QUORUM_HANG_MS;
    return true;
}

static bool has_suspect(const struct quorum *q, const struct quorum_slot *s)
{
    return !s->gone && quorum_in_round(q, s, NODE_FAILED) && s->node.cause.strength && s->member;
}

/* Whether each member has reported its suspect, is done, or leaves. */
static bool quorum_suspects_reported(const struct quorum *q)
{
    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (!s->gone && s->member && quorum_in_round(q, s, NODE_RUNNING))
            return false;
    }
    return true;
}

/* The number of suspects with the same strength and code line. */
static int64_t same_suspects(const struct quorum *q, const struct meeting_cause *c)
{
    int64_t n = 0;

    for (int i = 0; i < q->n; i++) {
        const struct meeting_cause *other = &q->slots[i].node.cause;
        n += has_suspect(q, &q->slots[i]) && other->strength == c->strength && other->place == c->place;
    }
    return n;
}

/* The member with the strongest cause; NULL: no member has reported a suspect. */
static const struct quorum_slot *quorum_suspect(const struct quorum *q)
{
    const struct quorum_slot *best = NULL;
    int64_t best_company = 0;

    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        const struct meeting_cause *c = &s->node.cause, *b = best ? &best->node.cause : NULL;
        if (!has_suspect(q, s) || (b && c->strength < b->strength))
            continue;
        const int64_t n = same_suspects(q, c);
        const bool stronger = !b || c->strength > b->strength;
        const bool rarer = stronger || n < best_company;
        if (rarer ||
            (n == best_company && (c->number < b->number || (c->number == b->number && c->rank < b->rank)))) {
            best = s;
            best_company = n;
        }
    }
    return best;
}

/* ---- the rounds */

static void finish(struct quorum *q, enum meeting_end end, int64_t blame, const char *why)
{
    struct meeting_state *s = &q->state;

    s->stage = STAGE_ENDED;
    s->end = end;
    s->blame = blame;
    s->version++;
    q->last_call_ms = 0;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

/* Begin FORMING of the next round. */
static void form(struct quorum *q, bool nobody_missing, const char *why, int64_t now_ms)
{
    struct meeting_state *s = &q->state;

    s->stage = STAGE_FORMING;
    s->round++;
    s->version++;
    s->n = 0;
    s->hung = s->asks = s->number = s->call = s->done = 0;
    for (int i = 0; i < q->n; i++)
        q->slots[i].member = false;
    snprintf(s->why, sizeof(s->why), "%s", why);
    q->nobody_missing = nobody_missing;
    s->here = 0;
    s->left_ms = q->config.join_ms;
    s->missing[0] = '\0';
    q->since_ms = q->counted_ms = now_ms;
    q->last_call_ms = q->unsure_ms = 0;
}

/* qsort order of node ranks: the leader's host first, then `wanted` (-1 last), then the address as text, then
 * the ticket. Fixed ranks are distinct, and the host has rank 0. */
static int compare_ranks(const void *x, const void *y)
{
    const struct quorum_slot *a = *(const struct quorum_slot *const *)x,
                             *b = *(const struct quorum_slot *const *)y;
    const uint64_t of_a = (uint64_t)a->node.wanted, of_b = (uint64_t)b->node.wanted;
    const int at = strcmp(a->node.addr, b->node.addr);

    if (a->node.leaders != b->node.leaders)
        return a->node.leaders ? -1 : 1;
    if (of_a != of_b)
        return of_a < of_b ? -1 : 1;
    return at ? at : a->ticket < b->ticket ? -1 : a->ticket > b->ticket;
}

/* The index of the first member with this role; s->n, the index of the next member, if there is none. */
static int64_t first_with(const struct meeting_state *s, struct quorum_slot *const *in, const char *role)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->members[i].role == i && strcmp(in[i]->node.role, role) == 0)
            return i;
    return s->n;
}

/* Choose the members from the nodes that have joined: the leader's host and then the earliest ones, so that a
 * newcomer does not displace a member. */
static void choose(struct quorum *q, int64_t now_ms)
{
    struct quorum_slot *in[MEETING_NODES_MAX];
    struct meeting_state *s = &q->state;
    int64_t n = 0;

    for (int leads = 1; leads >= 0; leads--)
        for (int i = 0; i < q->n && n < q->config.max; i++)
            if (quorum_joined(q, &q->slots[i]) && q->slots[i].node.leaders == leads)
                in[n++] = &q->slots[i];
    qsort(in, (size_t)n, sizeof(*in), compare_ranks);
    s->master_port = q->config.master_port ? q->config.master_port : in[0]->node.port;
    snprintf(s->master_addr, sizeof(s->master_addr), "%s",
             q->config.master_addr ? q->config.master_addr : in[0]->node.addr);
    for (s->n = 0; s->n < n; s->n++) {
        s->members[s->n] = (struct meeting_member){in[s->n]->ticket, in[s->n]->node.nproc,
                                                   first_with(s, in, in[s->n]->node.role)};
        in[s->n]->member = true;
    }
    s->stage = STAGE_RUNNING;
    s->version++;
    q->since_ms = now_ms;
    q->last_call_ms = 0; /* else quorum_next_ms would return a past time until the round ends */
}

static bool fixed_size(const struct quorum *q)
{
    return q->config.min == q->config.max;
}

/* A node has received a signal. Start a new round without it if `rest` nodes are enough; else end the run. */
static bool leave(struct quorum *q, const struct quorum_slot *s, int64_t rest, int64_t now_ms)
{
    const bool running = q->state.stage == STAGE_RUNNING;
    char name[MEETING_NAME_BYTES + 32], why[MEETING_WHY_BYTES];

    meeting_node_name(&s->node, name);
    if (fixed_size(q) || s->node.leaders || (running && rest < q->config.min)) {
        snprintf(why, sizeof(why), "%s was stopped by signal %d", name, (int)s->node.signal);
        finish(q, END_SIGNAL, s->ticket, why);
    } else if (running) {
        snprintf(why, sizeof(why), "%s was stopped by signal %d: the others start again without it", name,
                 (int)s->node.signal);
        form(q, true, why, now_ms);
    } else
        return false;
    return true;
}

static void fail(struct quorum *q, const struct quorum_slot *s, int64_t now_ms)
{
    const struct meeting_cause *c = &s->node.cause;
    const int status = (int)c->status;
    char why[MEETING_WHY_BYTES], how[48];

    q->state.cause = *c;
    if (c->rank < 0 || q->state.restarts >= q->config.restarts || contract_is_final(status)) {
        snprintf(why, sizeof(why), "%.300s", c->rank < 0 ? c->message : "a rank failed");
        finish(q, END_FAILED, s->ticket, why);
        return;
    }
    snprintf(how, sizeof(how), WIFSIGNALED(status) ? "signal %d" : "exit code %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    q->state.restarts++;
    snprintf(why, sizeof(why), "rank %d (pid %d on %.200s) ended with %s: restart %d of %d", (int)c->rank,
             (int)c->pid, c->host, how, (int)q->state.restarts, (int)q->config.restarts);
    form(q, true, why, now_ms);
}

static bool is_leaving(const struct quorum_slot *s)
{
    return !s->gone && s->node.phase == NODE_LEAVING && s->node.signal;
}

/* The deadline of the last call; 0: it has not begun. While nodes still stop ranks of the previous round, the
 * deadline is later: else the new round would end as soon as these nodes join. */
static int64_t last_call_over_ms(const struct quorum *q)
{
    const int64_t stopped_ms = q->since_ms + q->config.stop_ms;

    for (int i = 0; q->last_call_ms && q->last_call_ms < stopped_ms && i < q->n; i++)
        if (!q->slots[i].gone && q->slots[i].node.phase >= NODE_RUNNING &&
            q->slots[i].node.phase <= NODE_DONE)
            return stopped_ms;
    return q->last_call_ms;
}

static bool form_on(struct quorum *q, int64_t now_ms)
{
    int64_t here = 0, living = 0;
    char why[MEETING_WHY_BYTES];

    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (s->gone)
            continue;
        here += quorum_joined(q, s);
        living += s->node.phase != NODE_LEAVING;
        if (s->node.phase == NODE_FAILED && s->node.cause.rank < 0) {
            fail(q, s, now_ms);
            return true;
        }
    }
    for (int i = 0; i < q->n; i++)
        if (is_leaving(&q->slots[i]) && leave(q, &q->slots[i], living, now_ms))
            return true;
    if (here < q->config.min)
        q->last_call_ms = 0;
    else if (here >= q->config.max || (q->nobody_missing && here == living) ||
             (q->last_call_ms && now_ms >= last_call_over_ms(q))) {
        choose(q, now_ms);
        return true;
    } else if (!q->last_call_ms)
        q->last_call_ms = now_ms + q->config.last_call_ms;
    if (here >= q->config.min || now_ms - q->since_ms < q->config.join_ms)
        return false;
    snprintf(why, sizeof(why), "rendezvous: %d of at least %d nodes came within %.3g s%s%s", (int)here,
             (int)q->config.min, (double)q->config.join_ms / 1000,
             q->gone[0] ? "; the last one lost was " : "", q->gone);
    finish(q, END_TIMEOUT, 0, why);
    return true;
}

/* The failure to report: the one with the lowest `unsure`, of these the earliest. */
static const struct quorum_slot *first_failure(const struct quorum *q)
{
    const struct quorum_slot *best = NULL;

    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (s->gone || !s->failed_order || s->node.phase != NODE_FAILED || !s->member)
            continue;
        if (!best || s->node.cause.unsure < best->node.cause.unsure ||
            (s->node.cause.unsure == best->node.cause.unsure && s->failed_order < best->failed_order))
            best = s;
    }
    return best;
}

static bool ends_by_a_loss(const struct quorum *q)
{
    return fixed_size(q) && q->config.restarts == 0;
}

/* Whether the loss of a node during FORMING ends the run. It does when the node had joined and fell silent:
 * its pod still seems to run, so nothing replaces it. When the connection ended, the launcher has exited, and
 * whatever started it can start another one in time. */
static bool is_awaited_in_vain(const struct quorum *q, const struct quorum_slot *lost)
{
    return lost && ends_by_a_loss(q) && !lost->disconnected && quorum_fits(q, lost);
}

static void lose(struct quorum *q, const struct quorum_slot *lost, int64_t now_ms)
{
    const bool over = ends_by_a_loss(q);
    char why[MEETING_WHY_BYTES];

    snprintf(why, sizeof(why), "%s was lost: %s%s", q->gone, q->gone_how,
             over ? "" : ": all ranks start again");
    if (over)
        finish(q, END_LOST, lost->ticket, why);
    else
        form(q, false, why, now_ms);
}

/* The round hangs: end the run when all members have reported their suspects. False: not yet, or there is no
 * suspect. */
static bool end_hung(struct quorum *q, int64_t now_ms)
{
    const struct quorum_slot *suspect;

    if (!quorum_suspects_reported(q) && now_ms < q->hang_ms)
        return false;
    suspect = quorum_suspect(q);
    if (!suspect)
        return false;
    q->state.cause = suspect->node.cause;
    finish(q, END_FAILED, suspect->ticket, "the run made no progress");
    return true;
}

/* Whether a rank failed on its own in a round that hangs. */
static bool failed_by_itself(const struct quorum *q, const struct quorum_slot *s)
{
    return !s->node.cause.strength && !s->node.cause.unsure &&
           s->failed_ms < q->hang_ms - QUORUM_HANG_MS + QUORUM_LOOK_MS;
}

/* Whether to report an unsure failure: no node has reported a better cause, and none still may. */
static bool may_be_root(const struct quorum *q, bool others_left, int64_t now_ms)
{
    return !others_left && (now_ms >= q->unsure_ms || quorum_suspects_reported(q)) &&
           !quorum_heartbeat_due(q, now_ms);
}

static bool run_on(struct quorum *q, const struct quorum_slot *lost, int64_t now_ms)
{
    const struct quorum_slot *failed = first_failure(q), *newcomer = NULL;
    const bool may_follow = failed && quorum_follows_disconnect(q, failed);
    int64_t done = 0, going = 0, busy = 0, living = 0;
    char name[MEETING_NAME_BYTES + 32], why[MEETING_WHY_BYTES];

    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        done += s->member && s->node.phase == NODE_DONE; /* also if the node was lost later */
        if (s->gone)
            continue;
        living++;
        busy += s->member && s->node.phase != NODE_DONE;
        going += s->node.phase == NODE_LEAVING;
        if (!s->member && s->node.phase == NODE_JOINING)
            newcomer = newcomer ? newcomer : s;
    }
    if (q->state.hung && failed && !failed_by_itself(q, failed))
        failed = NULL; /* it may result from the kills after the hang */
    if (failed && failed->node.cause.unsure && !q->unsure_ms) {
        q->unsure_ms = now_ms + QUORUM_ROOT_CAUSE_MS;
        q->state.asks = 1;
        q->state.version++;
        return true;
    }
    if (failed && !may_follow && (!failed->node.cause.unsure || may_be_root(q, lost || going, now_ms)))
        fail(q, failed, now_ms);
    else if (lost)
        lose(q, lost, now_ms);
    else if (!busy)
        finish(q, END_SUCCESS, 0, "all ranks ended well");
    else if (quorum_hang_begins(q, now_ms) || (q->state.hung && end_hung(q, now_ms)))
        return true;
    else if (newcomer && !done && !failed && !q->state.hung && q->state.n < q->config.max) {
        snprintf(why, sizeof(why), "%s joined: all ranks start again",
                 meeting_node_name(&newcomer->node, name));
        form(q, true, why, now_ms);
    } else {
        for (int i = 0; i < q->n; i++)
            if (is_leaving(&q->slots[i]) && q->slots[i].member &&
                leave(q, &q->slots[i], living - going, now_ms))
                return true;
        if (!q->state.hung || now_ms < q->hang_ms)
            return false;
        finish(q, END_TIMEOUT, 0, "the run made no progress, and no node reported which rank blocks it");
    }
    return true;
}

bool quorum_step(struct quorum *q, int64_t now_ms)
{
    const struct quorum_slot *lost = quorum_expire(q, now_ms);

    switch ((enum meeting_stage)q->state.stage) {
    case STAGE_FORMING:
        if (lost)
            q->nobody_missing = false;
        if (is_awaited_in_vain(q, lost)) {
            lose(q, lost, now_ms);
            return true;
        }
        return form_on(q, now_ms);
    case STAGE_RUNNING:
        return run_on(q, lost, now_ms);
    case STAGE_ENDED:
        break;
    }
    return false;
}

int64_t quorum_next_ms(const struct quorum *q, int64_t now_ms)
{
    int64_t next = now_ms + q->config.keep_alive_ms;

    if (q->last_call_ms && last_call_over_ms(q) < next)
        next = last_call_over_ms(q);
    if (q->unsure_ms && q->unsure_ms < next && q->unsure_ms > now_ms)
        next = q->unsure_ms;
    if (q->state.hung && q->hang_ms < next && q->hang_ms > now_ms)
        next = q->hang_ms;
    if (q->state.stage == STAGE_FORMING && q->since_ms + q->config.join_ms < next &&
        q->since_ms + q->config.join_ms > now_ms)
        next = q->since_ms + q->config.join_ms;
    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (s->disconnected && !s->gone && s->disconnected_ms + QUORUM_RECONNECT_MS < next)
            next = s->disconnected_ms + QUORUM_RECONNECT_MS;
    }
    return next;
}

bool quorum_over(const struct quorum *q)
{
    for (int i = 0; i < q->n; i++)
        if (!q->slots[i].gone && !q->slots[i].node.heard_end && q->slots[i].node.phase != NODE_LEAVING)
            return false;
    return q->state.stage == STAGE_ENDED;
}
