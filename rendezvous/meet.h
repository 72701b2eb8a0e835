/* meet.h - a launcher's place in the meeting of nodes: struct node, and where this node hosts also struct leader, in a thread with
 * one poll loop. PROTOCOL.md describes what they do.
 *
 * Ownership: meet_start creates a place and copies its configuration, meet_end ends it. The place owns the descriptor
 *            of meet_fd: do not use it after meet_end.
 * Threads:   it runs one thread. One other thread calls the functions; none of them waits for the network except meet_end, which
 *            is bounded.
 * Errors:    the view's error: ERR_TIMEOUT (no leader within the join timeout), ERR_PEER (the leader was lost),
 *            ERR_CONFLICT (this node has to host the leader and could not), ERR_INVALID (the leader has a key, this node none).
 *            No place (NODE_WHY_NO_PLACE) and a signal (NODE_WHY_LEFT) set no error.
 *            meet_start returns NULL with ERR_FATAL when it cannot create an eventfd or the thread.
 */
#ifndef TK_RENDEZVOUS_MEET_H
#define TK_RENDEZVOUS_MEET_H

#include "rendezvous/node.h"

enum meet_hosts { MEET_HOSTS_AUTO, MEET_HOSTS, MEET_HOSTS_NOT };

struct meet_config {
    const char *host; /* of the leader */
    int port;
    enum meet_hosts hosts;   /* AUTO: host the leader if `host` is this machine and the port is free */
    struct node_config node; /* `id` and `seed` are drawn here; its key is also the leader's */
    struct quorum_config quorum;
};

/* A copy of what the main loop needs. */
struct meet_view {
    enum node_stage stage;
    enum node_why why; /* of NODE_OVER */
    /* Of NODE_OVER without the run's end; kind ERR_NONE after NODE_WHY_NO_PLACE and NODE_WHY_LEFT. Of NODE_REACHES:
     * why the last try failed. */
    struct err err;
    int64_t ticket;         /* of this node; 0: none yet */
    int64_t round;          /* that it waits for, or that its ranks are of */
    int64_t spare_until_ms; /* until when it waits for a place while a round runs; INT64_MAX: it does not */
    bool must_stop;         /* its ranks are to be stopped */
    bool told;              /* this node has reported its failure of this round */
    struct meeting_state state; /* version 0: not heard yet */
};

struct meet;

struct meet *meet_start(const struct meet_config *c, struct err *err);
/* A descriptor that is readable after a new state, stage, must_stop or last error, and when the thread has ended.
 * meet_look makes it unreadable again. */
int meet_fd(const struct meet *m);
void meet_look(struct meet *m, struct meet_view *view);

/* As the functions of node.h. */
bool meet_begins(struct meet *m, int *rank, struct meet_view *view); /* true: *view is of that time */
void meet_rested(struct meet *m, bool good);
void meet_failed(struct meet *m, const struct meeting_cause *cause);
void meet_quiet(struct meet *m, bool quiet, int64_t number, int64_t call);
void meet_say_steps(struct meet *m, const struct steps *steps);
void meet_leave(struct meet *m, int signal);
/* The port that this node offers for MASTER_PORT, from the next round that it joins on. */
void meet_offer_port(struct meet *m, int port);

/* Where the leader is in this process: the times of steps over all nodes. False elsewhere. */
bool meet_steps(struct meet *m, struct steps *ret);

/* Say the last word and end. Where this node hosts, first wait up to `grace_ms` until all nodes know how the run ended. A thread
 * that does not end in time is left behind and frees what it holds. Accepts NULL. */
void meet_end(struct meet *m, int64_t grace_ms);

#endif
