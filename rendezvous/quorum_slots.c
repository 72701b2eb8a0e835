/* quorum_slots.c - the table of known nodes: record their states, find lost and replaced ones, list missing
 * ranks. */
#include "rendezvous/quorum_slots.h"
#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void quorum_init(struct quorum *q, const struct quorum_config *c, int64_t now_ms)
{
    *q = (struct quorum){.config = *c, .since_ms = now_ms, .counted_ms = now_ms};
    q->state.version = 1;
    q->state.stage = STAGE_FORMING;
    q->state.keep_alive_ms = c->keep_alive_ms;
    q->state.left_ms = c->join_ms;
}

void quorum_release(struct quorum *q)
{
    free(q->slots);
    q->slots = NULL;
    q->n = q->room = 0;
}

static struct quorum_slot *find(const struct quorum *q, int64_t ticket)
{
    for (int i = 0; i < q->n; i++)
        if (q->slots[i].ticket == ticket)
            return &q->slots[i];
    return NULL;
}

bool quorum_in_round(const struct quorum *q, const struct quorum_slot *s, enum node_phase phase)
{
    return s->node.phase == phase && s->node.round == q->state.round;
}

bool quorum_heartbeat_due(const struct quorum *q, int64_t now_ms)
{
    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (!s->gone && quorum_in_round(q, s, NODE_RUNNING) &&
            now_ms - s->heard_ms > q->config.keep_alive_ms && s->member)
            return true;
    }
    return false;
}

static struct quorum_slot *add(struct quorum *q, int64_t ticket)
{
    if (q->n == q->room) {
        q->room = q->room ? 2 * q->room : 16;
        struct quorum_slot *more = memory_must(realloc(q->slots, (size_t)q->room * sizeof(*more)));
        q->slots = more;
    }
    q->slots[q->n] = (struct quorum_slot){.ticket = ticket};
    return &q->slots[q->n++];
}

void quorum_disconnected(struct quorum *q, int64_t ticket, int64_t now_ms)
{
    struct quorum_slot *s = find(q, ticket);

    if (!s || s->disconnected)
        return;
    s->disconnected = true;
    s->disconnected_ms = now_ms;
}

void quorum_returns(struct quorum *q, int64_t ticket, int64_t now_ms)
{
    struct quorum_slot *s = find(q, ticket);

    if (s && s->disconnected)
        s->disconnected_ms = now_ms;
}

void quorum_unreachable(struct quorum *q, int64_t ticket)
{
    struct quorum_slot *s = find(q, ticket);

    if (s)
        s->unreachable = true;
}

void quorum_hear(struct quorum *q, int64_t ticket, const struct meeting_node *node, int64_t now_ms)
{
    struct quorum_slot *s = find(q, ticket);

    if (!s)
        s = add(q, ticket);
    s->node = *node;
    s->heard_ms = now_ms;
    s->gone = s->unreachable = s->disconnected = false;
    if (node->phase != NODE_FAILED || node->round != q->state.round)
        s->failed_order = 0;
    else if (!s->failed_order) {
        s->failed_order = ++q->failures;
        s->failed_ms = now_ms;
    }
}

bool quorum_fits(const struct quorum *q, const struct quorum_slot *s)
{
    return s->node.phase == NODE_JOINING && s->node.round == q->state.round &&
           (!q->config.fixed_ranks || (s->node.wanted >= 0 && s->node.wanted < q->config.max));
}

bool quorum_joined(const struct quorum *q, const struct quorum_slot *s)
{
    return !s->gone && quorum_fits(q, s);
}

/* Whether a newer launcher with the same fixed rank has replaced node i. */
static bool is_replaced(const struct quorum *q, int i)
{
    for (int k = 0; q->config.fixed_ranks && k < q->n; k++)
        if (!q->slots[k].gone && q->slots[k].ticket > q->slots[i].ticket &&
            q->slots[k].node.wanted == q->slots[i].node.wanted)
            return true;
    return false;
}

/* How long without a heartbeat until a node is lost. */
static int64_t silence_ms(const struct quorum *q)
{
    return q->config.keep_alive_ms * q->config.keep_alive_attempts;
}

/* Whether a member has not started its ranks within two silences. */
static bool is_idle(const struct quorum *q, const struct quorum_slot *s, int64_t now_ms)
{
    return q->state.stage == STAGE_RUNNING && s->node.phase == NODE_JOINING &&
           now_ms - q->since_ms >= 2 * silence_ms(q) && s->member;
}

/* Why the node counts as lost, or NULL. */
static const char *lost_how(const struct quorum *q, int i, int64_t now_ms)
{
    const struct quorum_slot *s = &q->slots[i];

    if (s->disconnected && now_ms - s->disconnected_ms >= QUORUM_RECONNECT_MS)
        return "its launcher's connection ended";
    if (now_ms - s->heard_ms >= silence_ms(q))
        return "it sent nothing for too long";
    if (s->unreachable)
        return "it receives nothing (does the network drop large packets?)";
    if (is_idle(q, s, now_ms))
        return "it did not start its ranks";
    return is_replaced(q, i) ? "another launcher has taken its node rank" : NULL;
}

/* Whether the loss of node i matters: it could join this round, or is a member that is not done. */
static bool is_missed(const struct quorum *q, int i)
{
    const struct quorum_slot *s = &q->slots[i];

    if (q->state.stage == STAGE_FORMING)
        return s->node.phase != NODE_LEAVING && !is_replaced(q, i);
    return s->member && s->node.phase != NODE_DONE;
}

const struct quorum_slot *quorum_expire(struct quorum *q, int64_t now_ms)
{
    const struct quorum_slot *lost = NULL;

    for (int i = 0; i < q->n; i++) {
        struct quorum_slot *s = &q->slots[i];
        const char *how = s->gone ? NULL : lost_how(q, i, now_ms);
        if (!how)
            continue;
        const bool missed = is_missed(q, i);
        s->gone = true;
        if (missed || !lost) { /* keep the name of a missed node */
            q->gone_how = how;
            meeting_node_name(&s->node, q->gone);
        }
        if (missed)
            lost = s;
    }
    /* A member that was lost while quorum_step decided something else. */
    for (int i = 0; !lost && q->state.stage == STAGE_RUNNING && i < q->n; i++)
        if (q->slots[i].gone && is_missed(q, i))
            lost = &q->slots[i];
    return lost;
}

bool quorum_follows_disconnect(const struct quorum *q, const struct quorum_slot *failed)
{
    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (s != failed && s->disconnected && failed->failed_ms >= s->disconnected_ms &&
            s->node.phase != NODE_DONE && s->member)
            return true;
    }
    return false;
}

/* List the node ranks that have not joined, as in "1, 4..7"; a list that is too long ends with "...". */
static void list_missing(const struct quorum *q, const bool *has, char out[static MEETING_MISSING_BYTES])
{
    size_t len = 0;

    for (int64_t from = 0, to; from < q->config.max; from = to + 1) {
        char part[48];
        for (to = from; to < q->config.max && !has[to]; to++)
            ;
        if (to == from)
            continue;
        const char *comma = len ? ", " : "";
        int n = to - from > 1 ? snprintf(part, sizeof(part), "%s%" PRId64 "..%" PRId64, comma, from, to - 1)
                              : snprintf(part, sizeof(part), "%s%" PRId64, comma, from);
        if (len + (size_t)n + sizeof(", ...") > MEETING_MISSING_BYTES) {
            snprintf(out + len, MEETING_MISSING_BYTES - len, ", ...");
            return;
        }
        memcpy(out + len, part, (size_t)n + 1);
        len += (size_t)n;
    }
}

bool quorum_count_joined(struct quorum *q, int64_t now_ms)
{
    struct meeting_state *s = &q->state;
    const bool named = q->config.fixed_ranks && q->config.max <= MEETING_NODES_MAX;
    char missing[MEETING_MISSING_BYTES] = "";
    bool has[MEETING_NODES_MAX] = {false};
    int64_t here = 0, left = q->since_ms + q->config.join_ms - now_ms;

    if (s->stage != STAGE_FORMING || now_ms - q->counted_ms < QUORUM_COUNT_MS)
        return false;
    for (int i = 0; i < q->n; i++) {
        if (!quorum_joined(q, &q->slots[i]))
            continue;
        here++;
        if (named)
            has[q->slots[i].node.wanted] = true;
    }
    if (named)
        list_missing(q, has, missing);
    if (here == s->here && strcmp(missing, s->missing) == 0)
        return false;
    s->here = here;
    s->left_ms = left < 0 ? 0 : left;
    memcpy(s->missing, missing, sizeof(missing));
    s->version++;
    q->counted_ms = now_ms;
    return true;
}

static bool has_new_steps(const struct quorum *q, const struct quorum_slot *s)
{
    return !s->gone && quorum_in_round(q, s, NODE_RUNNING) && s->node.steps.ranks &&
           s->node.steps.window != s->steps_window && s->member;
}

bool quorum_steps(struct quorum *q, struct steps *ret)
{
    int n = 0;

    if (q->state.stage != STAGE_RUNNING || q->state.n < 1 || q->state.n > q->n)
        return false;
    cleanup_free struct steps *part = memory_must(calloc((size_t)q->n, sizeof(*part)));
    for (int i = 0; i < q->n; i++)
        if (has_new_steps(q, &q->slots[i]))
            part[n++] = q->slots[i].node.steps;
    if (n < q->state.n)
        return false;
    for (int i = 0; i < q->n; i++)
        q->slots[i].steps_window = q->slots[i].node.steps.window;
    ret->window++;
    steps_merge(part, n, ret);
    return true;
}
