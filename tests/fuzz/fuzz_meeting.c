/* fuzz_meeting.c - records of nodes, and the leader's state. Byte 0, bit 0: the other bytes are a state, which stays the same
 * when it is written and read again. Else they are records of nodes, each behind a byte, whose low bits are the node and the
 * others the time that passes, and its length in 2 bytes: a shorter record ends with zeros. Whatever the records contain, the
 * leader's state can be written and read, and names only nodes that have sent a record. */
#include "fuzz.h"

#include "rendezvous/message.h"
#include "rendezvous/quorum.h"

#include <string.h>

enum { NODES = 4 };

static void check_state(const struct meeting_state *s)
{
    static struct meeting_state again;
    cleanup_buf struct buf text = BUF_INIT(MESSAGE_STATE_BYTES);
    struct err err;

    MUST(s->n >= 0 && s->n <= MEETING_NODES_MAX);
    meeting_put_state(s, &text);
    MUST(!text.full);
    MUST(meeting_get_state(text.data, text.len, &again, &err) == 0);
    MUST(again.version == s->version && again.stage == s->stage && again.round == s->round &&
         again.n == s->n);
    MUST(again.hung == s->hung && again.asks == s->asks && again.number == s->number &&
         again.call == s->call && again.cause.place == s->cause.place &&
         again.cause.strength == s->cause.strength && again.cause.number == s->cause.number);
    MUST(again.here == s->here && again.left_ms == s->left_ms && strcmp(again.missing, s->missing) == 0);
    MUST(strcmp(again.why, s->why) == 0 && strcmp(again.cause.message, s->cause.message) == 0);
    MUST(memcmp(again.members, s->members, (size_t)s->n * sizeof(s->members[0])) == 0);
}

static void hear(struct quorum *q, const char *bytes, size_t len, int64_t ticket, int64_t now_ms)
{
    struct meeting_node node;
    char whole[sizeof(node)] = {0};
    struct err err;

    memcpy(whole, bytes, len < sizeof(whole) ? len : sizeof(whole));
    if (meeting_get_node(whole, len < sizeof(whole) ? sizeof(whole) : len, &node, &err) < 0)
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    else {
        node.leaders = ticket == 1;
        quorum_hear(q, ticket, &node, now_ms);
    }
}

static bool has_heard(const struct quorum *q, int64_t ticket)
{
    for (int i = 0; i < q->n; i++)
        if (q->slots[i].ticket == ticket)
            return true;
    return false;
}

/* The leader goes round as long as there is something to decide; that ends. */
static void step(struct quorum *q, int64_t now_ms)
{
    int64_t version = q->state.version;
    int turns = 0;

    while (quorum_step(q, now_ms)) {
        MUST(q->state.version > version && ++turns < 100);
        version = q->state.version;
        check_state(&q->state);
    }
    if (quorum_count_joined(q, now_ms)) {
        MUST(q->state.version > version && q->state.stage == STAGE_FORMING && q->state.here <= NODES);
        MUST(!quorum_count_joined(q, now_ms));
        check_state(&q->state);
    }
    struct steps steps = {0};
    if (quorum_steps(q, &steps)) {
        MUST(q->state.stage == STAGE_RUNNING && steps.window == 1 && steps.ranks >= q->state.n);
        MUST(steps.median_us >= 0 && steps.median_us <= STEPS_US_MAX && steps.wait_us <= STEPS_US_MAX);
        MUST(steps_ratio(&steps) >= 0 && !quorum_steps(q, &steps));
    }
    MUST(quorum_next_ms(q, now_ms) > now_ms || q->state.stage == STAGE_ENDED);
    MUST(q->state.n <= q->config.max && q->state.restarts <= q->config.restarts);
    MUST(!q->state.hung || q->state.stage != STAGE_FORMING); /* a round that hangs ends the run */
    for (int64_t i = 0; i < q->state.n; i++)
        MUST(has_heard(q, q->state.members[i].ticket));
}

static void records(const char *bytes, size_t len, bool fixed)
{
    struct quorum q;
    const struct quorum_config c = {.min = 2,
                                    .max = fixed ? 2 : 3,
                                    .fixed_ranks = fixed,
                                    .restarts = 2,
                                    .join_ms = 60000,
                                    .last_call_ms = 3000,
                                    .keep_alive_ms = 5000,
                                    .keep_alive_attempts = 3};
    int64_t now_ms = 1000;

    quorum_init(&q, &c, now_ms);
    while (len > 3) {
        const unsigned char head = (unsigned char)bytes[0];
        const size_t said = (unsigned char)bytes[1] + 256u * (unsigned char)bytes[2];
        const size_t n = said < len - 3 ? said : len - 3;
        now_ms += (head >> 3) * 100;
        if (head & 4)
            quorum_disconnected(&q, 1 + head % NODES, now_ms);
        hear(&q, bytes + 3, n, 1 + head % NODES, now_ms);
        step(&q, now_ms);
        bytes += n + 3;
        len -= n + 3;
    }
    /* All fall silent. */
    for (int i = 0; i < 60; i++)
        step(&q, now_ms += 3000);
    MUST(q.state.stage == STAGE_ENDED);
    quorum_release(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct meeting_state s;
    struct err err;

    if (size < 2 || size > MESSAGE_STATE_BYTES)
        return 0;
    const char *bytes = (const char *)data + 1;
    if (data[0] & 1) {
        if (meeting_get_state(bytes, size - 1, &s, &err) == 0)
            check_state(&s);
        else
            MUST(err.kind == ERR_INVALID && err.msg[0]);
    } else
        records(bytes, size - 1, data[0] & 2);
    return 0;
}
