/* meet.h - a launcher's rendezvous thread: runs struct node, and struct leader on the node that hosts it, in one poll
 * loop. launcher/agent_nodes.c calls it. PROTOCOL.md describes the protocol.
 *
 * Ownership: meet_start creates a struct meet and copies its configuration; meet_end frees it, with the descriptor
 *            that meet_fd returned.
 * Threads:   one thread of its own. One other thread calls the functions. Only meet_end waits for the network, for a
 *            bounded time.
 * Errors:    the view's error: ERR_TIMEOUT (no leader within the join timeout), ERR_PEER (the leader was lost),
 *            ERR_CONFLICT (this node has to host the leader and could not), ERR_INVALID (the leader has a key, this
 *            node none). NODE_WHY_NO_PLACE and NODE_WHY_LEFT set no error. meet_start returns NULL with ERR_FATAL
 *            when it cannot create an eventfd or the thread.
 */
#ifndef TK_RENDEZVOUS_MEET_H
#define TK_RENDEZVOUS_MEET_H

#include "rendezvous/node.h"

enum meet_hosts { MEET_HOSTS_AUTO, MEET_HOSTS, MEET_HOSTS_NOT };

struct meet_config {
    const char *host; /* of the leader */
    int port;
    enum meet_hosts hosts;   /* AUTO: host the leader if `host` is this machine and the port is free */
    struct node_config node; /* meet_start fills in `id` and `seed`; its key is also the leader's */
    struct quorum_config quorum;
};

/* A copy of what the main loop needs. */
struct meet_view {
    enum node_stage stage;
    /* In NODE_OVER: why the node gave up; ERR_NONE after NODE_WHY_ENDED, NODE_WHY_NO_PLACE and NODE_WHY_LEFT. In
     * NODE_REACHES: why the last attempt to connect failed. */
    struct err err;
    int64_t ticket; /* of this node; 0: none yet */
    int64_t round;  /* that this node waits for, or whose ranks it runs */
    int64_t
        spare_until_ms; /* while another round runs: when this node stops waiting for one; INT64_MAX: never */
    bool must_stop;     /* the launcher has to stop its ranks */
    bool failure_reported;      /* this node has reported a failed rank of this round */
    struct meeting_state state; /* version 0: not received yet */
};

struct meet;

struct meet *meet_start(const struct meet_config *c, struct err *err);
/* An eventfd that becomes readable when state, stage, must_stop or err has changed, and when the thread has ended.
 * meet_look copies the view and resets it. */
int meet_fd(const struct meet *m);
void meet_look(struct meet *m, struct meet_view *view);

/* The functions of node.h of the same names, with the lock held. */
bool meet_begins(struct meet *m, int *rank, struct meet_view *view); /* true: *view is filled in */
void meet_ranks_ended(struct meet *m, bool good);
void meet_failed(struct meet *m, const struct meeting_cause *cause);
void meet_quiet(struct meet *m, bool quiet, int64_t number, int64_t call);
void meet_report_steps(struct meet *m, const struct steps *steps);
void meet_leave(struct meet *m, int signal);
/* Set the free port that this node offers for MASTER_PORT from its next round on. */
void meet_offer_port(struct meet *m, int port);

/* On the node that hosts the leader: step times over all nodes. False on other nodes. */
bool meet_steps(struct meet *m, struct steps *ret);

/* Send the last message and end the thread. The host of the leader first waits up to `grace_ms` until all nodes have
 * read how the run ended. A thread that does not end in time is detached, and frees its memory itself. Accepts
 * NULL. */
void meet_end(struct meet *m, int64_t grace_ms);

#endif
