/* quorum_hang.c - decide from the members' states that a round hangs, and choose among their suspects. */
#include "rendezvous/quorum_hang.h"
#include "rendezvous/quorum_slots.h"

bool quorum_hang_begins(struct quorum *q, int64_t now_ms)
{
    struct meeting_state *state = &q->state;
    int64_t quiet = 0, done = 0, number = 0, call = 0;

    for (int i = 0; i < q->n && !state->hung; i++) {
        const struct quorum_slot *s = &q->slots[i];
        const bool runs = quorum_in_round(q, s, NODE_RUNNING), ended = quorum_in_round(q, s, NODE_DONE);
        /* A node that was lost after it was done still counts as done. */
        if ((s->gone && !ended) || (!runs && !ended) || !quorum_is_member(q, s->ticket))
            continue;
        if (runs && !(s->node.quiet && s->node.done == state->done))
            return false; /* usually the first member: to check all at each step would cost O(n^2) */
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
    return !s->gone && quorum_in_round(q, s, NODE_FAILED) && s->node.cause.strength &&
           quorum_is_member(q, s->ticket);
}

bool quorum_suspects_reported(const struct quorum *q)
{
    for (int i = 0; i < q->n; i++) {
        const struct quorum_slot *s = &q->slots[i];
        if (!s->gone && quorum_is_member(q, s->ticket) && quorum_in_round(q, s, NODE_RUNNING))
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

const struct quorum_slot *quorum_suspect(const struct quorum *q)
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
