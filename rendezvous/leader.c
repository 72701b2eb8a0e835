/* leader.c - the leader's connections: authenticate nodes, pass on their states, send STATE; see PROTOCOL.md. */
#include "rendezvous/leader.h"
#include "common/memory.h"
#include "common/secret.h"

#include <stdlib.h>
#include <string.h>

void leader_init(struct leader *l, const struct leader_config *c, int64_t now_ms)
{
    *l = (struct leader){.config = *c};
    quorum_init(&l->quorum, &c->quorum, now_ms);
}

void leader_release(struct leader *l)
{
    quorum_release(&l->quorum);
    free(l->links);
    free(l->nodes);
    *l = (struct leader){0};
}

bool leader_unauthenticated(const struct leader *l, int link, bool *greeted, int64_t *came_ms)
{
    const struct leader_link *k = &l->links[link];

    *greeted = k->at != LINK_OPENED;
    *came_ms = k->came_ms;
    return !k->ticket && k->at != LINK_REFUSED;
}

static void free_link(struct leader *l, int link)
{
    l->open--;
    l->links[link] = (struct leader_link){.at = LINK_FREE};
}

/* Close the connection at the next leader_act; refusal 0: without sending REFUSED. */
static void refuse(struct leader_link *k, int64_t refusal)
{
    k->at = LINK_REFUSED;
    k->refusal = refusal;
}

static int free_place(struct leader *l)
{
    for (int i = 0; i < l->n_links; i++)
        if (l->links[i].at == LINK_FREE)
            return i;
    if (l->n_links == l->room_links) {
        l->room_links = l->room_links ? 2 * l->room_links : 16;
        l->links = memory_must(realloc(l->links, (size_t)l->room_links * sizeof(*l->links)));
    }
    return l->n_links++;
}

int leader_opened(struct leader *l, bool local, int64_t now_ms)
{
    const int at = free_place(l);
    struct leader_link *k = &l->links[at];
    *k = (struct leader_link){.at = LINK_OPENED, .local = local, .came_ms = now_ms, .serial = ++l->serials};
    if (++l->open > LEADER_LINKS_MAX)
        refuse(k, REFUSED_CROWDED);
    return at;
}

static bool same_run(const char *ours, const char theirs[static MESSAGE_RUN_BYTES])
{
    char padded[MESSAGE_RUN_BYTES] = {0};

    strncpy(padded, ours, sizeof(padded) - 1);
    return secret_equal(padded, theirs, sizeof(padded));
}

static void greet(const struct leader *l, struct leader_link *k, const struct message_hello *h)
{
    k->at = LINK_GREETED;
    k->hello = *h;
    if (h->version != MESSAGE_VERSION)
        refuse(k, REFUSED_VERSION);
    else if (!same_run(l->config.run_id, h->run_id))
        refuse(k, REFUSED_RUN);
    else if (h->auth != l->config.key.has)
        refuse(k, REFUSED_AUTH);
}

/* The CHALLENGE of a connection, the same each time. */
static struct message_challenge challenge(const struct leader *l, const struct leader_link *k)
{
    struct message_challenge c = {.auth = l->config.key.has};

    memcpy(c.leader, l->config.id, sizeof(c.leader));
    jobkey_nonce(&l->config.key, l->config.seed, k->serial, c.nonce);
    message_prove(&l->config.key, MESSAGE_CHALLENGE, &k->hello, &c, c.answer);
    return c;
}

/* The ticket of the node with this id, a new one if the id is new; 0: none are left. */
static int64_t ticket_of(struct leader *l, const uint8_t id[static MESSAGE_ID_BYTES])
{
    for (int i = 0; i < l->n_nodes; i++)
        if (memcmp(l->nodes[i].id, id, MESSAGE_ID_BYTES) == 0)
            return i + 1;
    if (l->n_nodes == MEETING_TICKETS_MAX)
        return 0;
    if (l->n_nodes == l->room_nodes) {
        l->room_nodes = l->room_nodes ? 2 * l->room_nodes : 16;
        l->nodes = memory_must(realloc(l->nodes, (size_t)l->room_nodes * sizeof(*l->nodes)));
    }
    l->nodes[l->n_nodes] = (struct leader_node){.link = -1};
    memcpy(l->nodes[l->n_nodes].id, id, MESSAGE_ID_BYTES);
    return ++l->n_nodes;
}

static void admit(struct leader *l, struct leader_link *k, const uint8_t answer[static MESSAGE_ANSWER_BYTES],
                  int64_t now_ms)
{
    const struct message_challenge c = challenge(l, k);

    if (!message_proved(&l->config.key, MESSAGE_ANSWER, &k->hello, &c, answer)) {
        refuse(k, REFUSED_AUTH);
        return;
    }
    const int64_t ticket = ticket_of(l, k->hello.id);

    if (!ticket) {
        refuse(k, REFUSED_CROWDED);
        return;
    }
    k->at = LINK_ANSWERED;
    k->ticket = ticket;
    if (k->hello.number > l->nodes[ticket - 1].newest)
        quorum_returns(&l->quorum, ticket, now_ms);
}

/* Whether a node sends NODE messages but has received no STATE for the silence, over any of its connections: its
 * reader is stuck, or the network drops large packets. It would hold up all others. A node that is only a little
 * behind is fine. */
static bool takes_nothing(const struct leader *l, struct leader_node *n, int64_t version, int64_t now_ms)
{
    const struct quorum_config *c = &l->config.quorum;

    if (version >= n->sent)
        n->behind_ms = 0;
    else if (version > n->knows || !n->behind_ms)
        n->behind_ms = now_ms;
    n->knows = version;
    return n->behind_ms && now_ms - n->behind_ms >= c->keep_alive_ms * c->keep_alive_attempts;
}

/* Pass a NODE message to the quorum. One from a connection that is not the node's newest is stale, so it is
 * ignored. */
static void hear(struct leader *l, int link, const struct meeting_node *record, int64_t now_ms)
{
    struct leader_link *k = &l->links[link];
    struct leader_node *n = &l->nodes[k->ticket - 1];

    if (k->hello.number < n->newest || record->beat <= n->beat)
        return;
    struct meeting_node node = *record;
    n->newest = k->hello.number;
    n->link = link;
    n->beat = k->beat = node.beat;
    if (takes_nothing(l, n, node.version, now_ms)) {
        quorum_unreachable(&l->quorum, k->ticket);
        return;
    }
    node.leaders = k->local;
    quorum_hear(&l->quorum, k->ticket, &node, now_ms);
}

bool leader_heard(struct leader *l, int link, const struct message *m, int64_t now_ms)
{
    struct leader_link *k = &l->links[link];

    if (k->at == LINK_REFUSED) /* sent before it received REFUSED */
        return true;
    if (m->type == MESSAGE_HELLO && k->at == LINK_OPENED)
        greet(l, k, &m->hello);
    else if (m->type == MESSAGE_ANSWER && k->at == LINK_CHALLENGED)
        admit(l, k, m->answer, now_ms);
    else if (m->type == MESSAGE_NODE && k->at == LINK_WELCOMED)
        hear(l, link, &m->node, now_ms);
    else
        return false;
    return true;
}

void leader_closed(struct leader *l, int link, enum link_end how, int64_t now_ms)
{
    const struct leader_link *k = &l->links[link];
    struct leader_node *n = k->ticket ? &l->nodes[k->ticket - 1] : NULL;

    if (n && n->link == link) {
        n->link = -1;
        if (how == LINK_CLOSED)
            quorum_disconnected(&l->quorum, k->ticket, now_ms);
    }
    free_link(l, link);
}

void leader_blocked(struct leader *l, int link, bool blocked)
{
    l->links[link].blocked = blocked;
}

void leader_displace(struct leader *l, int link)
{
    refuse(&l->links[link], 0);
}

size_t leader_frame_max(const struct leader *l, int link)
{
    return l->links[link].ticket ? MESSAGE_NODE_BYTES : MESSAGE_FIRST_BYTES;
}

/* Close connections that sent no NODE within LEADER_GREET_MS. */
static void close_late(struct leader *l, int64_t now_ms)
{
    for (int i = 0; i < l->n_links; i++) {
        struct leader_link *k = &l->links[i];
        if (k->at != LINK_FREE && k->at != LINK_REFUSED && !k->local && !k->beat &&
            now_ms - k->came_ms >= LEADER_GREET_MS)
            refuse(k, 0);
    }
}

void leader_decide(struct leader *l, int64_t now_ms)
{
    close_late(l, now_ms);
    while (quorum_step(&l->quorum, now_ms))
        ;
    (void)quorum_count_joined(&l->quorum, now_ms);
    (void)quorum_steps(&l->quorum, &l->steps);
    l->next = 0;
}

/* Whether STATE goes over this connection: the node's newest, or any one if the node has sent no NODE yet. */
static bool receives_state(const struct leader *l, int link)
{
    const struct leader_node *n = &l->nodes[l->links[link].ticket - 1];

    return n->newest ? n->link == link : true;
}

/* Fill in the next message to send over this connection; false: none. */
static bool write_to(struct leader *l, int link, struct message *m)
{
    struct leader_link *k = &l->links[link];

    if (k->at == LINK_GREETED) {
        *m = (struct message){.type = MESSAGE_CHALLENGE, .challenge = challenge(l, k)};
        k->at = LINK_CHALLENGED;
    } else if (k->at == LINK_ANSWERED) {
        *m = (struct message){.type = MESSAGE_WELCOME, .ticket = k->ticket};
        k->at = LINK_WELCOMED;
    } else if (k->at == LINK_WELCOMED && k->heard != k->beat) {
        *m = (struct message){.type = MESSAGE_HEARD, .beat = k->beat};
        k->heard = k->beat;
    } else if (k->at == LINK_WELCOMED && k->version != l->quorum.state.version && receives_state(l, link)) {
        *m = (struct message){.type = MESSAGE_STATE, .state = &l->quorum.state};
        k->version = l->quorum.state.version;
        l->nodes[k->ticket - 1].sent = k->version;
    } else
        return false;
    return true;
}

bool leader_act(struct leader *l, struct leader_action *a)
{
    for (; l->next < l->n_links; l->next++) {
        struct leader_link *k = &l->links[l->next];
        a->link = l->next;
        if (k->at == LINK_REFUSED && k->refusal && !k->blocked) {
            a->kind = LEADER_SEND;
            a->message = (struct message){.type = MESSAGE_REFUSED, .refusal = k->refusal};
            k->refusal = 0;
            return true;
        }
        if (k->at == LINK_REFUSED) {
            a->kind = LEADER_CLOSE;
            free_link(l, l->next);
            return true;
        }
        if (k->at != LINK_FREE && !k->blocked && write_to(l, l->next, &a->message)) {
            a->kind = LEADER_SEND;
            return true;
        }
    }
    return false;
}

int64_t leader_next_ms(const struct leader *l, int64_t now_ms)
{
    int64_t next_ms = quorum_next_ms(&l->quorum, now_ms);

    for (int i = 0; i < l->n_links; i++)
        if (l->links[i].at != LINK_FREE && l->links[i].at != LINK_REFUSED && !l->links[i].local &&
            !l->links[i].beat && l->links[i].came_ms + LEADER_GREET_MS < next_ms)
            next_ms = l->links[i].came_ms + LEADER_GREET_MS;
    return next_ms;
}
