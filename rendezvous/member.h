/* member.h - a node's place in the meeting: it hosts the store or finds it, says how its ranks are, hears how the run
 * stands, all beside the launcher's loop.
 *
 * Ownership: member_start gives a member that member_end ends.
 * Threads:   two of its own (and the leader's on the host). The caller's calls do not wait for the network, but for
 *            member_end, which is bounded.
 * Errors:    MEMBER_LOST with an error: ERR_TIMEOUT (no store within the join timeout), ERR_PEER (it was there and went
 *            away, or was silent for all heartbeats), ERR_CONFLICT (this node has to host it and the port is taken).
 * Order:     what is said replaces what was said; every change of what is heard makes member_fd readable.
 */
#ifndef TK_RENDEZVOUS_MEMBER_H
#define TK_RENDEZVOUS_MEMBER_H

#include "rendezvous/quorum.h"

enum member_hosts { MEMBER_HOSTS_AUTO, MEMBER_HOSTS, MEMBER_HOSTS_NOT };

struct member_config {
    const char *host; /* of the store */
    int port;
    const char *run_id;
    enum member_hosts hosts; /* AUTO: when `host` is this machine and its port is free */
    const char *addr; /* what others reach us by; NULL: by which we reach the store; the host: `host` */
    struct quorum_config
        quorum; /* join_ms and the heartbeat are every node's own, the rest is the leader's */
};

enum member_link { MEMBER_CONNECTING, MEMBER_IN, MEMBER_LOST };

struct member_view {
    enum member_link link;
    struct err err;             /* of MEMBER_LOST; of MEMBER_CONNECTING: why the last try failed */
    int64_t ticket;             /* ours; 0: not yet */
    bool leaders;               /* the store is in this process */
    struct meeting_state state; /* version 0: not heard yet */
};

struct member;
struct resolver;

struct member *member_start(const struct member_config *c, struct err *err);
int member_fd(const struct member *m);

/* Copy what is known; member_fd is quiet until the next change. */
void member_look(struct member *m, struct member_view *view);

/* What we are, from now on; beat, tie, addr, leaders and heard_end are filled in here. */
void member_say(struct member *m, const struct meeting_node *node);

/* The last word gets out, a leader waits until all have heard how the run ended, each at most `grace_ms`. */
void member_end(struct member *m, int64_t grace_ms);

/* Is `host` a name or address of this machine? False when it does not resolve (yet). */
bool member_host_is_here(struct resolver *host, int64_t deadline_ms);

#endif
