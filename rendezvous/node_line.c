/* node_line.c - a node's connections to the leader: dial, greet, replace one that fell silent; PROTOCOL.md describes them. */
#include "rendezvous/node_line.h"

#include <stdio.h>
#include <string.h>

/* How long without a message from the leader until it is lost. */
static int64_t silence_ms(const struct node *n)
{
    return n->config.keep_alive_ms * n->config.keep_alive_attempts;
}

/* How often the node sends its state. */
static int64_t interval_ms(const struct node *n)
{
    const int64_t own_ms = n->config.keep_alive_ms, theirs_ms = n->state->keep_alive_ms;

    return theirs_ms && theirs_ms < own_ms ? theirs_ms : own_ms;
}

static int64_t answer_ms(const struct node *n)
{
    const int64_t part_ms = n->config.keep_alive_ms * 2 / 5;

    return part_ms < NODE_ANSWER_MS ? part_ms : NODE_ANSWER_MS;
}

static struct node_link *find(struct node *n, uint32_t number)
{
    for (int i = 0; i < NODE_LINKS_MAX; i++)
        if (n->line.links[i].number == number && number)
            return &n->line.links[i];
    return NULL;
}

static const struct node_link *first_at(const struct node *n, int least, int most)
{
    for (int i = 0; i < NODE_LINKS_MAX; i++) {
        const struct node_link *k = &n->line.links[i];
        if (k->number && !k->close && (int)k->at >= least && (int)k->at <= most)
            return k;
    }
    return NULL;
}

struct node_link *node_current(struct node *n)
{
    const struct node_link *k = first_at(n, LINE_CURRENT, LINE_CURRENT);

    return k ? &n->line.links[k - n->line.links] : NULL;
}

static bool has_current(const struct node *n)
{
    return first_at(n, LINE_CURRENT, LINE_CURRENT) != NULL;
}

static const struct node_link *candidate(const struct node *n)
{
    return first_at(n, LINE_DIALED, LINE_ANSWER);
}

static bool has_room(const struct node *n)
{
    for (int i = 0; i < NODE_LINKS_MAX; i++)
        if (!n->line.links[i].number)
            return true;
    return false;
}

bool node_is_acknowledged(const struct node *n)
{
    return !n->line.dirty && n->line.heard >= n->line.sent;
}

static bool is_done(const struct node *n)
{
    return n->stage == NODE_OVER && n->over.done;
}

/* When to dial another connection; INT64_MAX: not needed. */
static int64_t want_ms(const struct node *n)
{
    const struct node_line *l = &n->line;

    if (l->lost || n->stage == NODE_OVER || candidate(n) || !has_room(n))
        return INT64_MAX;
    if (!has_current(n))
        return l->dial_ms;
    if (!l->asked_ms)
        return INT64_MAX;
    const int64_t at_ms = l->asked_ms + answer_ms(n);
    return at_ms < l->dial_ms ? l->dial_ms : at_ms;
}

/* When to send the state next. */
static int64_t speak_ms(const struct node *n)
{
    const struct node_link *k = first_at(n, LINE_CURRENT, LINE_CURRENT);

    if (!k || k->blocked || !n->report.phase || is_done(n))
        return INT64_MAX;
    return n->line.dirty ? 0 : n->line.sent_ms + interval_ms(n);
}

/* When a candidate times out. */
static int64_t late_ms(const struct node_link *k)
{
    return k->since_ms + (k->at == LINE_DIALED ? NODE_CONNECT_MS : NODE_CANDIDATE_MS);
}

/* The leader may have moved, or this node may have to host it. */
static void forget_leader(struct node *n)
{
    n->ticket = 0;
    n->line.welcomed = false;
}

void node_check_leader(struct node *n, int64_t now_ms)
{
    struct node_line *l = &n->line;

    for (int i = 0; i < NODE_LINKS_MAX; i++) {
        struct node_link *k = &l->links[i];
        if (!k->number || k->at > LINE_ANSWER || k->close || now_ms < late_ms(k))
            continue;
        k->close = true;
        l->met = l->met && k->at > LINE_HELLO;
        l->dial_ms = now_ms + NODE_REST_MS;
        snprintf(l->why, sizeof(l->why), "%s",
                 k->at == LINE_DIALED ? "its address does not answer" : "nothing answers there");
    }
    struct node_link *mute = n->stage == NODE_REACHES ? node_current(n) : NULL;
    if (mute && now_ms - mute->since_ms >= silence_ms(n)) { /* it sent WELCOME and no STATE */
        mute->close = true;
        forget_leader(n);
        snprintf(l->why, sizeof(l->why),
                 "the leader there sent no state: does the network drop large packets?");
    }
    if (n->stage == NODE_REACHES || n->stage == NODE_OVER)
        return;
    const bool gone = l->broken_ms && now_ms - l->broken_ms >= QUORUM_RECONNECT_MS &&
                      !first_at(n, LINE_CONNECTED, LINE_CURRENT);
    l->lost = l->lost || gone || (l->owed_ms && now_ms - l->owed_ms >= silence_ms(n));
}

void node_connected(struct node *n, uint32_t number, const char *addr, int64_t now_ms)
{
    struct node_link *k = find(n, number);

    if (!k || k->at != LINE_DIALED)
        return;
    k->at = LINE_CONNECTED;
    k->since_ms = now_ms;
    n->line.broken_ms = 0; /* something listens there: the leader may be stopped */
    snprintf(n->line.addr, sizeof(n->line.addr), "%s", n->config.addr ? n->config.addr : addr);
}

void node_hello(const struct node_config *c, uint32_t number, struct message_hello *ret)
{
    *ret = (struct message_hello){.version = MESSAGE_VERSION, .number = number, .auth = c->key.has};
    memcpy(ret->id, c->id, sizeof(ret->id));
    jobkey_nonce(&c->key, c->seed, number, ret->nonce);
    snprintf(ret->run_id, sizeof(ret->run_id), "%s", c->run_id);
}

bool node_answer(const struct node_config *c, uint32_t number, const struct message_challenge *said,
                 uint8_t answer[static MESSAGE_ANSWER_BYTES])
{
    struct message_hello h;

    node_hello(c, number, &h);
    if (said->auth != c->key.has || !message_proved(&c->key, MESSAGE_CHALLENGE, &h, said, said->answer))
        return false;
    message_prove(&c->key, MESSAGE_ANSWER, &h, said, answer);
    return true;
}

/* Handle CHALLENGE. It has no effect without the leader's proof. */
static bool greet(struct node *n, struct node_link *k, const struct message_challenge *c, int64_t now_ms)
{
    struct node_line *l = &n->line;
    const bool other = l->welcomed && memcmp(l->leader, c->leader, sizeof(l->leader)) != 0;

    if (k->at != LINE_HELLO)
        return false;
    l->met = true;
    if (!node_answer(&n->config, k->number, c, k->answer)) {
        k->close = true;
        l->dial_ms = now_ms + NODE_REST_MS;
        snprintf(l->why, sizeof(l->why), "a launcher is there that does not have the key of this job");
        return true;
    }
    if (other && n->stage != NODE_REACHES) { /* the name or route leads to another leader */
        k->close = true;
        l->lost = l->lost || !has_current(n);
        l->dial_ms = now_ms + NODE_REST_MS;
        snprintf(l->why, sizeof(l->why), "another run has begun there");
        return true;
    }
    if (other)
        n->state->version = 0; /* this node has reported nothing to the previous leader */
    memcpy(l->leader, c->leader, sizeof(l->leader));
    k->at = LINE_CHALLENGED;
    return true;
}

static bool welcome(struct node *n, struct node_link *k, int64_t ticket, int64_t now_ms)
{
    struct node_line *l = &n->line;
    struct node_link *before = node_current(n);

    if (k->at != LINE_ANSWER)
        return false;
    if (before)
        before->at = LINE_PARKED;
    k->at = LINE_CURRENT;
    l->welcomed = true;
    l->broken_ms = l->asked_ms = 0;
    l->dirty = n->report.phase != 0;
    k->since_ms = now_ms;
    n->ticket = ticket;
    memcpy(n->report.addr, l->addr, sizeof(n->report.addr));
    return true;
}

static bool refused(struct node *n, struct node_link *k, int64_t why, int64_t now_ms)
{
    static const char *const words[] = {"", "another run is there", "a launcher of another release is there",
                                        "the launcher there has a key, and this one has none",
                                        "too many launchers are there"};
    struct node_line *l = &n->line;
    const bool has_key = n->config.key.has; /* REFUSED carries no proof: with a key, do not trust it */

    if (k->at > LINE_ANSWER)
        return false;
    k->close = true;
    l->met = true;
    l->dial_ms = now_ms + NODE_REST_MS;
    l->lost = l->lost || (n->stage != NODE_REACHES && why != REFUSED_CROWDED && !has_current(n) && !has_key);
    l->keyless = l->keyless || (why == REFUSED_AUTH && !has_key);
    snprintf(l->why, sizeof(l->why), "%s",
             why == REFUSED_AUTH && has_key                 ? "the launcher there rejects this one's key"
             : why >= REFUSED_RUN && why <= REFUSED_CROWDED ? words[why]
                                                            : "refused");
    return true;
}

/* HEARD arrived: close the parked connections and the candidate, which are not needed any more. */
static bool answered(struct node *n, struct node_link *k, int64_t beat, int64_t now_ms)
{
    struct node_line *l = &n->line;

    if (k->at < LINE_CURRENT)
        return false;
    if (k->at == LINE_PARKED || beat <= l->heard)
        return true;
    l->heard = beat;
    l->asked_ms = beat >= l->sent ? 0 : now_ms;
    for (int i = 0; i < NODE_LINKS_MAX; i++)
        if (l->links[i].number && &l->links[i] != k)
            l->links[i].close = true;
    return true;
}

static bool informed(struct node *n, const struct node_link *k, const struct meeting_state *state)
{
    if (k->at < LINE_CURRENT)
        return false;
    if (state->version > n->state->version)
        *n->state = *state;
    return true;
}

static bool take(struct node *n, struct node_link *k, const struct message *m, int64_t now_ms)
{
    switch (m->type) {
    case MESSAGE_CHALLENGE:
        return greet(n, k, &m->challenge, now_ms);
    case MESSAGE_WELCOME:
        return welcome(n, k, m->ticket, now_ms);
    case MESSAGE_REFUSED:
        return refused(n, k, m->refusal, now_ms);
    case MESSAGE_HEARD:
        return answered(n, k, m->beat, now_ms);
    case MESSAGE_STATE:
        return informed(n, k, m->state);
    case MESSAGE_HELLO:
    case MESSAGE_ANSWER:
    case MESSAGE_NODE:
        break;
    }
    return false;
}

bool node_heard(struct node *n, uint32_t number, const struct message *m, int64_t now_ms)
{
    struct node_link *k = find(n, number);

    if (!k || k->close)
        return true; /* node_act will close it */
    if (!take(n, k, m, now_ms))
        return false;
    if (k->at >= LINE_CURRENT && n->line.owed_ms)
        n->line.owed_ms = n->line.asked_ms || !has_current(n) ? now_ms : 0;
    return true;
}

/* A long STATE on a slow network delays HEARD, so any byte counts as an answer. */
void node_received(struct node *n, uint32_t number, int64_t now_ms)
{
    const struct node_link *k = find(n, number);
    struct node_line *l = &n->line;

    if (!k || k->at != LINE_CURRENT)
        return;
    l->asked_ms = l->asked_ms ? now_ms : 0;
    l->owed_ms = l->owed_ms ? now_ms : 0;
}

void node_closed(struct node *n, uint32_t number, enum link_end how, const char *why, int64_t now_ms)
{
    struct node_link *k = find(n, number);
    struct node_line *l = &n->line;

    if (!k)
        return;
    const struct node_link was = *k;
    *k = (struct node_link){0};
    if (was.at == LINE_PARKED)
        return;
    if (was.at == LINE_CURRENT) {
        l->dial_ms = now_ms;
        l->asked_ms = 0;
        l->owed_ms = l->owed_ms ? l->owed_ms : now_ms;
        if (n->stage == NODE_REACHES && !n->state->version)
            forget_leader(n);
    } else if (!was.close)
        l->dial_ms = now_ms + NODE_REST_MS;
    if (was.close)
        return;
    l->met = l->met && was.at > LINE_HELLO;
    snprintf(l->why, sizeof(l->why), "%s", why);
    if (how == LINK_CLOSED && was.at >= LINE_CONNECTED && !has_current(n) && !l->broken_ms)
        l->broken_ms = now_ms;
}

void node_blocked(struct node *n, uint32_t number, bool blocked)
{
    struct node_link *k = find(n, number);

    if (k)
        k->blocked = blocked;
}

static void act(struct node_action *a, enum node_action_kind kind, uint32_t number)
{
    *a = (struct node_action){.kind = kind, .number = number};
}

static bool act_close(struct node *n, struct node_action *a)
{
    for (int i = 0; i < NODE_LINKS_MAX; i++) {
        struct node_link *k = &n->line.links[i];
        if (!k->number || !(k->close || is_done(n)))
            continue;
        act(a, NODE_CLOSE, k->number);
        *k = (struct node_link){0};
        return true;
    }
    return false;
}

static bool act_dial(struct node *n, struct node_action *a, int64_t now_ms)
{
    if (want_ms(n) > now_ms)
        return false;
    for (int i = 0; i < NODE_LINKS_MAX; i++) {
        struct node_link *k = &n->line.links[i];
        if (k->number)
            continue;
        *k = (struct node_link){.number = ++n->line.numbers, .at = LINE_DIALED, .since_ms = now_ms};
        act(a, NODE_DIAL, k->number);
        return true;
    }
    return false;
}

static bool act_greet(struct node *n, struct node_action *a)
{
    for (int i = 0; i < NODE_LINKS_MAX; i++) {
        struct node_link *k = &n->line.links[i];
        if (!k->number || k->blocked || (k->at != LINE_CONNECTED && k->at != LINE_CHALLENGED))
            continue;
        act(a, NODE_SEND, k->number);
        if (k->at == LINE_CONNECTED) {
            a->message.type = MESSAGE_HELLO;
            node_hello(&n->config, k->number, &a->message.hello);
        } else {
            a->message.type = MESSAGE_ANSWER;
            memcpy(a->message.answer, k->answer, sizeof(k->answer));
        }
        k->at = k->at == LINE_CONNECTED ? LINE_HELLO : LINE_ANSWER;
        return true;
    }
    return false;
}

void node_was_stopped(struct node *n, int64_t ms)
{
    n->line.sent_ms -= ms;
}

bool node_act(struct node *n, struct node_action *a, int64_t now_ms)
{
    struct node_line *l = &n->line;

    if (act_close(n, a) || act_dial(n, a, now_ms) || act_greet(n, a))
        return true;
    if (speak_ms(n) > now_ms)
        return false;
    l->sent = ++n->report.beat;
    l->sent_ms = now_ms;
    l->asked_ms = l->asked_ms ? l->asked_ms : now_ms;
    l->owed_ms = l->owed_ms ? l->owed_ms : now_ms;
    l->dirty = false;
    act(a, NODE_SEND, node_current(n)->number);
    a->message.type = MESSAGE_NODE;
    n->report.version = n->state->version;
    a->message.node = n->report;
    return true;
}

static void earlier(int64_t *first, int64_t at_ms)
{
    *first = at_ms < *first ? at_ms : *first;
}

int64_t node_line_next_ms(const struct node *n, int64_t now_ms)
{
    const struct node_line *l = &n->line;
    const struct node_link *k = candidate(n);
    int64_t first = INT64_MAX;

    earlier(&first, want_ms(n));
    earlier(&first, speak_ms(n));
    if (k)
        earlier(&first, late_ms(k));
    if (n->stage == NODE_REACHES || n->stage == NODE_OVER || l->lost)
        return first;
    if (l->owed_ms)
        earlier(&first, l->owed_ms + silence_ms(n));
    if (l->broken_ms && l->broken_ms + QUORUM_RECONNECT_MS > now_ms)
        earlier(&first, l->broken_ms + QUORUM_RECONNECT_MS);
    return first;
}
