/* fuzz_message.c - bytes over a connection of the meeting. Byte 0, bit 0: the rest is sent to a leader, else by a leader to a
 * node; bit 1: the run has a key. A message that can be read is the same when it is written again. No sender becomes a node
 * without the run id. With a key no sender becomes a node, and no node follows such a leader. Every answer can be written. */
#include "fuzz.h"

#include "rendezvous/leader.h"
#include "rendezvous/node.h"

#include <string.h>

static const char RUN[] = "the run's id";

static struct meeting_state state, again;

static bool has_run(const char *bytes, size_t len)
{
    return memmem(bytes, len, RUN, strlen(RUN)) != NULL;
}

/* The message says the same when it is written and read again, and is no longer than it may be. */
static void check(const struct message *m)
{
    cleanup_buf struct buf one = BUF_INIT(MESSAGE_STATE_BYTES), two = BUF_INIT(MESSAGE_STATE_BYTES);
    static struct message copy;
    struct err err;
    size_t used;

    MUST(message_put(m, &one, &err) == 0);
    MUST(message_frame(one.data, one.len, MESSAGE_STATE_BYTES, &used) == 1 && used == one.len);
    MUST(message_get(one.data, one.len, &copy, &again, &err) == 0 && copy.type == m->type);
    MUST(message_put(&copy, &two, &err) == 0);
    MUST(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
}

static bool next(const char **bytes, size_t *len, size_t max, struct message *m)
{
    struct err err = {0};
    size_t used = 0;

    if (message_frame(*bytes, *len, max, &used) != 1)
        return false;
    MUST(used > 4 && used <= *len && used <= max);
    if (message_get(*bytes, used, m, &state, &err) < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return false;
    }
    check(m);
    *bytes += used;
    *len -= used;
    return true;
}

static void to_leader(const char *bytes, size_t len, bool key)
{
    const struct leader_config c = {
        .quorum = {.min = 1, .max = 2, .join_ms = 60000, .keep_alive_ms = 5000, .keep_alive_attempts = 3},
        .run_id = RUN,
        .key = {.has = key, .bytes = "key"}};
    const bool may_enter = has_run(bytes, len) && !key;
    static struct leader_action a;
    static struct message m;
    struct leader l;
    bool open = true;

    leader_init(&l, &c, 1);
    const int link = leader_opened(&l, false, 1);
    for (int64_t now = 2; open && next(&bytes, &len, leader_frame_max(&l, link), &m); now += 1000) {
        open = leader_heard(&l, link, &m, now);
        if (!open)
            leader_closed(&l, link, LINK_CLOSED, now);
        leader_decide(&l, now);
        while (leader_act(&l, &a)) {
            MUST(a.link == link);
            open = open && a.kind == LEADER_SEND;
            if (a.kind == LEADER_SEND)
                check(&a.message);
        }
    }
    MUST(l.open == open && l.n_nodes <= may_enter);
    leader_release(&l);
}

static void to_node(const char *bytes, size_t len, bool key)
{
    const struct node_config c = {.run_id = RUN,
                                  .key = {.has = key, .bytes = "key"},
                                  .join_ms = 60000,
                                  .keep_alive_ms = 5000,
                                  .keep_alive_attempts = 3,
                                  .role = ""};
    static struct node_action a;
    static struct message m;
    struct node n;
    bool open = true;
    int rank;

    node_init(&n, &c, 1);
    MUST(node_act(&n, &a, 1) && a.kind == NODE_DIAL);
    const uint32_t number = a.number;
    node_connected(&n, number, "10.0.0.7", 1);
    for (int64_t now = 2; open && next(&bytes, &len, MESSAGE_STATE_BYTES, &m); now += 100) {
        open = node_heard(&n, number, &m, now);
        node_step(&n, now);
        (void)node_begins(&n, &rank);
        while (node_act(&n, &a, now)) {
            open = open && !(a.kind == NODE_CLOSE && a.number == number);
            if (a.kind == NODE_SEND)
                check(&a.message);
        }
        MUST(n.state->n >= 0 && n.state->n <= MEETING_NODES_MAX);
    }
    MUST(!key || (!n.line.welcomed && !n.line.lost && n.state->version == 0));
    node_release(&n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 2 * MESSAGE_STATE_BYTES)
        return 0;
    if (data[0] & 1)
        to_leader((const char *)data + 1, size - 1, data[0] & 2);
    else
        to_node((const char *)data + 1, size - 1, data[0] & 2);
    return 0;
}
