/* member.h - a launcher's membership in the meeting of nodes: connect to the store or host it, publish this
 * node's state with heartbeats, and receive the run's state (meeting.h), in threads beside the launcher's loop.
 *
 * Ownership: member_start creates a member and copies its configuration, member_end ends it.
 * Threads:   a member runs two threads, and on the node that hosts the store also the leader's. One thread calls
 *            the functions; none of them waits for the network except member_end, which is bounded.
 * Errors:    reported as MEMBER_LOST with an error: ERR_TIMEOUT (no store reached within the join timeout),
 *            ERR_PEER (the store went away, or did not answer for the heartbeats' silence), ERR_CONFLICT (this
 *            node has to host the store and could not), or the failure to start a thread.
 * Order:     each member_say replaces the state published before. Every change of the view makes member_fd
 *            readable.
 */
#ifndef TK_RENDEZVOUS_MEMBER_H
#define TK_RENDEZVOUS_MEMBER_H

#include "rendezvous/quorum.h"

enum member_hosts { MEMBER_HOSTS_AUTO, MEMBER_HOSTS, MEMBER_HOSTS_NOT };

struct member_config {
    const char *host; /* of the store */
    int port;
    const char *run_id;
    enum member_hosts hosts; /* AUTO: host the store if `host` is this machine and the port is free */
    /* Address for MASTER_ADDR; NULL: the local address of the connection to the store, on its host `host`. */
    const char *addr;
    /* Every node uses its own join_ms and heartbeat; the leader uses the rest of its own. */
    struct quorum_config quorum;
};

/* CONNECTING until this node has a ticket; LOST is final. */
enum member_link { MEMBER_CONNECTING, MEMBER_IN, MEMBER_LOST };

struct member_view {
    enum member_link link;
    struct err err;             /* of MEMBER_LOST; of MEMBER_CONNECTING: why the last try failed */
    int64_t ticket;             /* of this node; 0: none yet */
    bool leaders;               /* the store is in this process */
    struct meeting_state state; /* version 0: not received yet */
};

struct member;
struct resolver;

struct member *member_start(const struct member_config *c, struct err *err);
/* A descriptor that is readable when the view has changed since member_look. */
int member_fd(const struct member *m);

/* Copy the current view; member_fd is not readable until the next change. */
void member_look(struct member *m, struct member_view *view);

/* Publish *node as this node's state from now on; beat, tie, addr, leaders and heard_end are filled in here. */
void member_say(struct member *m, const struct meeting_node *node);

/* Publish these times of steps with the next heartbeat, until the next member_say. */
void member_say_steps(struct member *m, const struct steps *steps);

/* Where the leader is in this process: the times of steps over all nodes (leader_steps). False elsewhere. */
bool member_steps(struct member *m, struct steps *ret);

/* Publish the last state and end. On the node that hosts the store, first wait up to `grace_ms` until all nodes
 * have read how the run ended. Threads that do not end in time are left behind and free the member themselves.
 * Accepts NULL. */
void member_end(struct member *m, int64_t grace_ms);

/* Whether `host` is a name or address of this machine. False when it does not resolve before the deadline. */
bool member_host_is_here(struct resolver *host, int64_t deadline_ms);

#endif
