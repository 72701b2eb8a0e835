/* nodes.h - this node in a run of several nodes: translate the run's state (rendezvous/meet.h) into the
 * agent's next step, and the ranks' results into reports to the leader. agent_nodes.c calls it.
 *
 * Order:     call nodes_gather until it returns NODES_START or NODES_END. After NODES_START run the ranks and
 *            check view->must_stop meanwhile; report a failure (nodes_failed); when all have ended call nodes_rested;
 *            call nodes_gather again.
 * Ownership: nodes_open fills *n, nodes_close frees what it holds, also after a failed open. Strings in the
 *            identity and the view are valid until the next nodes_gather.
 * Errors:    nodes_verdict returns 140 on nodes that did not cause the failure, so that the operator, which
 *            compares all pods, can tell which one did; 138 when too few nodes joined. */
#ifndef TK_LAUNCHER_NODES_H
#define TK_LAUNCHER_NODES_H

#include "launcher/env.h"
#include "launcher/exit.h"
#include "launcher/suspect.h"
#include "rendezvous/meet.h"

struct nodes {
    const struct options *options;
    struct meet *meet;      /* the agent also calls it directly */
    struct meet_view *view; /* the last one copied by meet_look */
    int64_t round;          /* the last round that this node started; -1: none yet */
    bool again;             /* the launcher has not printed yet why that round is over */
    int held;               /* a socket that reserves the port offered for MASTER_PORT; -1: none */
    char master_addr[MEETING_NAME_BYTES];
};

enum nodes_step { NODES_WAIT, NODES_START, NODES_END };

/* Find a free TCP port and bind the socket *held to it; the caller closes it. While it is open, the kernel
 * does not assign the port to other sockets (an outgoing connection, another launcher). A process can still
 * listen at this port with SO_REUSEADDR, as PyTorch's TCPStore and this project's collectives do. */
int nodes_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

int nodes_open(struct nodes *n, const struct options *o, const char *run_id, struct err *err) MUST_CHECK;
void nodes_close(struct nodes *n);

/* Between two rounds: the agent's next step. NODES_START: *identity is filled in, start the ranks. NODES_WAIT:
 * wait for the next change. NODES_END: the run has ended, or this node has left it. *begun is true once,
 * after a round of this node has ended and a new one forms; view->state.why then has the reason. */
enum nodes_step nodes_gather(struct nodes *n, struct env_round *identity, bool *begun);

/* The run's state while this node's round runs, else NULL. */
const struct meeting_state *nodes_running(const struct nodes *n);

/* Report to the leader. nodes_failed: the root cause among this node's ranks (see exit_root_cause; only the
 * first call of a round has an effect), or the suspect if the round hangs (`hung`, else NULL). nodes_broken:
 * this launcher itself failed. nodes_rested: all its ranks are reaped (good: all with status 0). `host` is
 * this node's name. */
void nodes_failed(struct nodes *n, const struct exit_worker *w, int unsure, const struct suspect *hung,
                  const char *host);
void nodes_broken(struct nodes *n, const struct err *why, const char *host);
void nodes_rested(struct nodes *n, bool good);

/* Whether a run with a fixed number of nodes succeeded without this node: other nodes filled it. */
bool nodes_surplus(const struct nodes *n);
/* After NODES_END: the exit status. *mine: this node ended the run, by one of its ranks or its launcher. */
int nodes_verdict(const struct nodes *n, bool *mine);

/* The run's root cause as a worker, for the report. Its strings point into the view. */
struct exit_worker nodes_remote_worker(const struct nodes *n);

#endif
