/* waiting.c - format the messages about the nodes that a launcher waits for. */
#include "launcher/waiting.h"
#include "common/text.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>

void waiting_begin(struct waiting *w, int64_t now_ms)
{
    w->since_ms = now_ms;
    w->due_ms = now_ms + WAITING_NAME_MS;
}

bool waiting_due(struct waiting *w, const struct meet_view *v, int64_t now_ms)
{
    w->heard_ms = w->version == v->state.version ? w->heard_ms : now_ms;
    w->version = v->state.version;
    if (!w->due_ms || now_ms < w->due_ms)
        return false;
    if (now_ms < w->since_ms + WAITING_FIRST_MS && v->err.code != EAI_NONAME) {
        w->due_ms = w->since_ms + WAITING_FIRST_MS;
        return false;
    }
    w->due_ms = now_ms + WAITING_AGAIN_MS;
    return true;
}

static void add_limit(char out[static WAITING_BYTES], int64_t limit_ms, int64_t now_ms)
{
    text_add(out, WAITING_BYTES, "; gives up in %" PRId64 " s",
             limit_ms > now_ms ? (limit_ms - now_ms) / 1000 : 0);
}

static void say_forming(const struct waiting *w, const struct options *o, const struct meeting_state *s,
                        int64_t now_ms, char out[static WAITING_BYTES])
{
    text_add(out, WAITING_BYTES, ": ");
    if (s->here)
        text_add(out, WAITING_BYTES, "%" PRId64 " of ", s->here);
    if (o->nnodes_min == o->nnodes)
        text_add(out, WAITING_BYTES, "%d nodes%s", o->nnodes, s->here ? " have joined" : " are wanted");
    else
        text_add(out, WAITING_BYTES, "at least %d and at most %d nodes%s", o->nnodes_min, o->nnodes,
                 s->here ? " have joined" : " are wanted");
    if (s->missing[0])
        text_add(out, WAITING_BYTES, ", node ranks missing: %s", s->missing);
    if (s->here < o->nnodes_min)
        add_limit(out, w->heard_ms + s->left_ms, now_ms);
}

void waiting_format(const struct waiting *w, const struct options *o, const struct meet_view *v,
                    int64_t now_ms, char out[static WAITING_BYTES])
{
    const struct meet_config *m = &o->meeting;
    const struct meeting_state *s = &v->state;
    const bool in = v->stage != NODE_REACHES;
    const bool running = in && s->stage == STAGE_RUNNING;
    const bool ended_here = running && v->stage == NODE_RESTS;

    snprintf(out, WAITING_BYTES, "rendezvous at %.100s:%d: waiting for %s for %" PRId64 " s", m->host,
             m->port,
             !in          ? "the node that hosts it"
             : ended_here ? "the ranks of the other nodes, those of this one have ended,"
             : running    ? "a place among the nodes of the run"
                          : "other nodes",
             (now_ms - w->since_ms) / 1000);
    if (!in) {
        add_limit(out, w->since_ms + m->node.join_ms, now_ms);
        if (v->err.msg[0])
            text_add(out, WAITING_BYTES, " (%s)", v->err.msg);
    } else if (!running)
        say_forming(w, o, s, now_ms, out);
    else if (!ended_here)
        add_limit(out, v->spare_until_ms, now_ms);
}
