/* world_net.c - the simulated network: connections that keep the order of bytes, cuts, resets, machines that vanish. */
#include "world_net.h"
#include "attack.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKED = 3, NARROW_BYTES = 200 };

enum packet_kind { OPENED, DATA, END };

struct packet {
    struct packet *next;
    int64_t at_ms;
    enum packet_kind kind;
    enum link_end how;
    size_t len;
    char bytes[];
};

static int64_t later(const struct world *w, int64_t at_ms, int64_t until_ms)
{
    return at_ms >= until_ms ? at_ms : until_ms + (at_ms ^ w->now_ms) % 300;
}

static struct launcher *of(struct world *w, int who)
{
    return &w->launchers[who];
}

static int64_t cut_until(struct world *w, const struct wire *x)
{
    const int64_t a = of(w, x->node)->cut_until_ms, b = of(w, x->host)->cut_until_ms;

    return x->local ? 0 : a > b ? a : b;
}

static void tell_blocked(struct world *w, struct wire *x, int to)
{
    const bool blocked = x->flying[to] >= BLOCKED;

    if (to == TO_LEADER && x->node_open)
        node_blocked(&of(w, x->node)->node, x->number, blocked);
    if (to == TO_NODE && x->leader_open && x->link >= 0)
        leader_blocked(&of(w, x->host)->leader, x->link, blocked);
}

static void post(struct world *w, struct wire *x, int to, enum packet_kind kind, enum link_end how,
                 int64_t at_ms, const struct buf *bytes)
{
    const size_t len = bytes ? bytes->len : 0;

    if (x->dead && !(kind == END && how == LINK_SILENT))
        return;
    if (to == TO_NODE && !x->local && len > NARROW_BYTES && of(w, x->node)->narrow_until_ms > w->now_ms)
        x->stuck = true;
    if (to == TO_NODE && x->stuck && kind == DATA)
        return;
    struct packet *p = memory_must(calloc(1, sizeof(*p) + len));
    p->kind = kind;
    p->how = how;
    p->len = len;
    if (len)
        memcpy(p->bytes, bytes->data, len);
    p->at_ms = later(w, at_ms, cut_until(w, x));
    p->at_ms = p->at_ms < x->last_ms[to] ? x->last_ms[to] : p->at_ms;
    x->last_ms[to] = p->at_ms;
    if (x->last[to])
        x->last[to]->next = p;
    else
        x->first[to] = p;
    x->last[to] = p;
    x->flying[to]++;
    tell_blocked(w, x, to);
}

static int64_t latency(struct world *w, const struct wire *x)
{
    return x->local ? 0 : 1 + (int64_t)world_draw(w, 4);
}

static void drop(struct wire *x, int to)
{
    while (x->first[to]) {
        struct packet *p = x->first[to];
        x->first[to] = p->next;
        free(p);
    }
    x->last[to] = NULL;
    x->flying[to] = 0;
}

/* When a kernel gives up a connection whose other end is gone: after the silence (PROTOCOL.md). */
static int64_t silent_ms(struct world *w)
{
    const int64_t silence_ms = w->quorum.keep_alive_ms * w->quorum.keep_alive_attempts;

    return w->now_ms + silence_ms + (int64_t)world_draw(w, 3000);
}

/* One end is closed: by `by_node`, the other hears of it. */
static void shut(struct world *w, struct wire *x, int end, bool silently)
{
    bool *mine = end == TO_NODE ? &x->node_open : &x->leader_open;
    const bool other = end == TO_NODE ? x->leader_open : x->node_open;

    *mine = false;
    drop(x, end);
    if (other && end == TO_NODE && x->link < 0)
        x->leader_open = false; /* it was not accepted yet, or its first packet was lost */
    else if (other && x->dead)
        post(w, x, end == TO_NODE ? TO_LEADER : TO_NODE, END, LINK_SILENT, silent_ms(w), NULL);
    else if (other && !silently)
        post(w, x, end == TO_NODE ? TO_LEADER : TO_NODE, END, LINK_CLOSED, w->now_ms + latency(w, x), NULL);
    if (!x->node_open && !x->leader_open) {
        drop(x, TO_NODE);
        drop(x, TO_LEADER);
        x->used = false;
    }
}

static void dial(struct world *w, int who, uint32_t number)
{
    struct launcher *p = of(w, who);
    const bool nobody = w->host < 0 || !of(w, w->host)->alive;

    for (int i = 0; i < WORLD_WIRES; i++) {
        struct wire *x = &w->wires[i];
        if (x->used)
            continue;
        *x = (struct wire){.used = true,
                           .node = who,
                           .host = nobody ? who : w->host,
                           .number = number,
                           .link = -1,
                           .node_open = true,
                           .leader_open = !nobody,
                           .local = !nobody && w->host == who};
        const int64_t there = w->now_ms + latency(w, x);
        if (!x->local && attack_takes(w, who)) {
            x->fake = true;
            x->host = who;
            x->leader_open = false;
            post(w, x, TO_NODE, OPENED, LINK_CLOSED, there + 1, NULL);
            return;
        }
        if (nobody) {
            post(w, x, TO_NODE, END, LINK_CLOSED, there + 1, NULL);
            return;
        }
        if (cut_until(w, x) > w->now_ms)
            x->dead = true; /* its first packet is lost */
        post(w, x, TO_LEADER, OPENED, LINK_CLOSED, there, NULL);
        post(w, x, TO_NODE, OPENED, LINK_CLOSED, there + latency(w, x), NULL);
        return;
    }
    node_closed(&p->node, number, LINK_SILENT, "too many connections in the test", world_now(w, p));
    w->wrong = "too many connections";
}

static bool is_mine(const struct wire *x, int who, int to)
{
    return x->used && (to == TO_NODE ? x->node == who && x->node_open : x->host == who && x->leader_open);
}

int64_t net_due_ms(const struct world *w, int who)
{
    int64_t due = WORLD_NEVER;

    for (int i = 0; i < WORLD_WIRES; i++)
        for (int to = 0; to < 2; to++)
            if (is_mine(&w->wires[i], who, to) && w->wires[i].first[to] && w->wires[i].first[to]->at_ms < due)
                due = w->wires[i].first[to]->at_ms;
    return due;
}

static bool decode(struct world *w, const struct packet *p, size_t max, struct message *m)
{
    struct err err;
    size_t used;

    if (message_frame(p->bytes, p->len, max, &used) == 1 && used == p->len &&
        message_get(p->bytes, p->len, m, &w->decoded, &err) == 0)
        return true;
    w->wrong = "a message does not decode";
    return false;
}

static void to_node(struct world *w, struct wire *x, const struct packet *p)
{
    struct node *n = &of(w, x->node)->node;
    const int64_t now_ms = world_now(w, of(w, x->node));
    struct message m;

    if (p->kind == OPENED)
        node_connected(n, x->number, x->local ? "job-0" : "10.0.0.1", now_ms);
    else if (p->kind == END) {
        node_closed(n, x->number, p->how, "it ended", now_ms);
        shut(w, x, TO_NODE, true);
    } else if (decode(w, p, MESSAGE_STATE_BYTES, &m) && !node_heard(n, x->number, &m, now_ms))
        w->wrong = "the node does not take the leader's message";
}

static void to_leader(struct world *w, struct wire *x, const struct packet *p)
{
    struct leader *l = &of(w, x->host)->leader;
    const int64_t now_ms = world_now(w, of(w, x->host));
    struct message m;

    if (p->kind == OPENED)
        x->link = leader_opened(l, x->local, now_ms);
    else if (p->kind == END) {
        if (x->link >= 0)
            leader_closed(l, x->link, p->how, now_ms);
        shut(w, x, TO_LEADER, true);
    } else if (x->link >= 0 && decode(w, p, leader_frame_max(l, x->link), &m) &&
               !leader_heard(l, x->link, &m, now_ms))
        w->wrong = "the leader does not take the node's message";
}

void net_deliver(struct world *w, int who)
{
    for (int i = 0; i < WORLD_WIRES; i++)
        for (int to = 0; to < 2; to++) {
            struct wire *x = &w->wires[i];
            while (is_mine(x, who, to) && x->first[to] && x->first[to]->at_ms <= w->now_ms) {
                struct packet *p = x->first[to];
                x->first[to] = p->next;
                x->last[to] = p->next ? x->last[to] : NULL;
                x->flying[to]--;
                tell_blocked(w, x, to);
                if (to == TO_NODE)
                    to_node(w, x, p);
                else
                    to_leader(w, x, p);
                free(p);
            }
        }
}

static struct wire *find(struct world *w, int who, uint32_t number, int link)
{
    for (int i = 0; i < WORLD_WIRES; i++) {
        struct wire *x = &w->wires[i];
        if (link >= 0 ? is_mine(x, who, TO_LEADER) && x->link == link
                      : is_mine(x, who, TO_NODE) && x->number == number)
            return x;
    }
    return NULL;
}

static void put(struct world *w, struct wire *x, int to, const struct message *m)
{
    cleanup_buf struct buf bytes = BUF_INIT(MESSAGE_STATE_BYTES);
    struct err err;

    if (x && x->fake) {
        struct message reply;
        if (!attack_reply(w, m, &reply))
            return;
        if (message_put(&reply, &bytes, &err) == 0)
            post(w, x, TO_NODE, DATA, LINK_CLOSED, w->now_ms + latency(w, x), &bytes);
        return;
    }
    if (w->attack.most || w->attack.at_endpoint)
        attack_sniff(w, m);
    if (!x || message_put(m, &bytes, &err) < 0)
        w->wrong = x ? "a message does not encode" : "a message to a connection that is closed";
    else
        post(w, x, to, DATA, LINK_CLOSED, w->now_ms + latency(w, x), &bytes);
}

void net_flush(struct world *w, int who)
{
    struct launcher *p = of(w, who);
    struct leader_action b;
    struct node_action a;

    while (node_act(&p->node, &a, world_now(w, p))) {
        struct wire *x = a.kind == NODE_DIAL ? NULL : find(w, who, a.number, -1);
        if (a.kind == NODE_DIAL)
            dial(w, who, a.number);
        else if (a.kind == NODE_SEND)
            put(w, x, TO_LEADER, &a.message);
        else if (x)
            shut(w, x, TO_NODE, false);
    }
    while (p->leads && leader_act(&p->leader, &b)) {
        if (attack_hear(w, who, &b))
            continue;
        struct wire *x = find(w, who, 0, b.link);
        if (b.kind == LEADER_SEND)
            put(w, x, TO_NODE, &b.message);
        else if (x)
            shut(w, x, TO_LEADER, false);
    }
}

void net_end(struct world *w, int who, bool power)
{
    for (int i = 0; i < WORLD_WIRES; i++)
        for (int to = 0; to < 2; to++) {
            struct wire *x = &w->wires[i];
            if (!is_mine(x, who, to))
                continue;
            if (power && !x->local) {
                x->dead = true;
                if (world_draw(w, 10) < 8)
                    post(w, x, to == TO_NODE ? TO_LEADER : TO_NODE, END, LINK_SILENT, silent_ms(w), NULL);
            }
            shut(w, x, to, power);
        }
    if (w->host == who)
        w->host = -1;
}

static bool touches(const struct wire *x, int who)
{
    return x->used && !x->local && (x->node == who || x->host == who);
}

/* What flies arrives when the network is back and TCP sends it again. */
void net_cut(struct world *w, int who, int64_t until_ms)
{
    const int64_t gone_ms = until_ms - w->now_ms;

    if (until_ms <= of(w, who)->cut_until_ms)
        return;
    of(w, who)->cut_until_ms = until_ms;
    for (int i = 0; i < WORLD_WIRES; i++)
        for (int to = 0; to < 2; to++) {
            struct wire *x = &w->wires[i];
            if (!touches(x, who))
                continue;
            const int64_t again = until_ms + (int64_t)world_draw(w, (uint64_t)gone_ms + 1);
            for (struct packet *p = x->first[to]; p; p = p->next)
                p->at_ms = p->at_ms < again ? again : p->at_ms;
            x->last_ms[to] = x->last_ms[to] < again ? again : x->last_ms[to];
        }
}

void net_reset(struct world *w, int who)
{
    for (int i = 0; i < WORLD_WIRES; i++) {
        struct wire *x = &w->wires[i];
        for (int to = 0; to < 2 && touches(x, who); to++) {
            drop(x, to);
            post(w, x, to, END, LINK_CLOSED, w->now_ms + (int64_t)world_draw(w, 200), NULL);
        }
    }
}

void net_forget(struct world *w, int who)
{
    for (int i = 0; i < WORLD_WIRES; i++) {
        struct wire *x = &w->wires[i];
        for (int to = 0; to < 2 && touches(x, who); to++) {
            drop(x, to);
            x->dead = true;
            if (world_draw(w, 3))
                post(w, x, to, END, LINK_SILENT, silent_ms(w), NULL);
        }
    }
}

void net_release(struct world *w)
{
    for (int i = 0; i < WORLD_WIRES; i++) {
        drop(&w->wires[i], TO_NODE);
        drop(&w->wires[i], TO_LEADER);
    }
}
