/* nodes.h - this node among the others: from what the meeting says to what the agent does, and back.
 *
 * Order:     nodes_gather until it says start or end; the ranks run, while nodes_must_stop is asked; how they ended
 *            is said; nodes_gather again.
 * Ownership: nodes_open gives what nodes_close takes back; texts in the identity and the view live until the next
 *            nodes_gather.
 * Errors:    nodes_verdict: 140 on a node that is not to blame itself, so that who looks at all nodes (the operator
 *            does) sees at once which one is; 138 when too few nodes came.
 */
#ifndef TK_LAUNCHER_NODES_H
#define TK_LAUNCHER_NODES_H

#include "launcher/env.h"
#include "launcher/exit.h"
#include "rendezvous/member.h"

struct nodes {
    const struct options *options;
    struct member *member;
    struct member_view *view;
    struct meeting_node say;
    int64_t round; /* that we want to be in, or are; -1: none yet */
    bool started;  /* its ranks have been */
    bool told;     /* how it failed */
    int held;      /* keeps the port that we offer for MASTER_PORT, as node 0 for the whole round; -1: none */
    int64_t spare_ms; /* until then we wait for a place; 0: we have one */
    char master_addr[MEETING_NAME_BYTES];
};

enum nodes_step { NODES_WAIT, NODES_START, NODES_END };

int nodes_open(struct nodes *n, const struct options *o, const char *run_id, struct err *err) MUST_CHECK;
void nodes_close(struct nodes *n);

/* Readable when there are news; then nodes_look. */
int nodes_fd(const struct nodes *n);
void nodes_look(struct nodes *n);

/* Between two rounds. NODES_START fills the identity; *begun is true when a round before it came to an end that
 * view->state.why tells of. */
enum nodes_step nodes_gather(struct nodes *n, struct env_round *identity, bool *begun);

/* How long the agent may sleep in NODES_WAIT; -1 for ever. */
int nodes_wait_ms(const struct nodes *n);

/* Our ranks run in a round that is over. */
bool nodes_must_stop(const struct nodes *n);

void nodes_failed(struct nodes *n, const struct exit_worker *w, bool sure, const char *host);
void nodes_broken(struct nodes *n, const struct err *why, const char *host);
void nodes_done(struct nodes *n);
void nodes_leave(struct nodes *n, int signal);

/* After NODES_END: what to exit with. *mine: the cause is one of our own ranks, or we ourselves. */
int nodes_verdict(const struct nodes *n, bool *mine);

/* The cause as a worker of another node. */
struct exit_worker nodes_remote_worker(const struct nodes *n);

#endif
