/* nodes.h - this node's part in a run of several nodes: translate the meeting's state (rendezvous/meet.h) into
 * the agent's next step, and the ranks' results into reports to the leader.
 *
 * Order:     call nodes_gather until it returns NODES_START or NODES_END. After NODES_START run the ranks and
 *            check view->must_stop meanwhile; report a failure (nodes_failed); when all have ended call nodes_rested;
 *            call nodes_gather again.
 * Ownership: nodes_open fills *n, nodes_close frees what it holds, also after a failed open. Strings in the
 *            identity and the view are valid until the next nodes_gather.
 * Errors:    nodes_verdict returns 140 on nodes that did not cause the failure, so that whoever compares all
 *            nodes (the operator) sees which one did; 138 when too few nodes joined.
 */
#ifndef TK_LAUNCHER_NODES_H
#define TK_LAUNCHER_NODES_H

#include "launcher/env.h"
#include "launcher/exit.h"
#include "launcher/suspect.h"
#include "rendezvous/meet.h"

struct nodes {
    const struct options *options;
    struct meet *meet;      /* the agent also calls it itself, where there is nothing to translate */
    struct meet_view *view; /* the last one copied by meet_look */
    int64_t round;          /* whose ranks were started last; -1: none yet */
    bool again;             /* nobody has been told yet why that round is over */
    int held;               /* a socket that reserves the port offered for MASTER_PORT; -1: none */
    char master_addr[MEETING_NAME_BYTES];
};

enum nodes_step { NODES_WAIT, NODES_START, NODES_END };

/* Find a free TCP port and bind a socket, *held, to it, which the caller closes. While it is open, the kernel
 * does not choose the port for others (an outgoing connection, another launcher). A process that asks for this
 * port can still listen at it with SO_REUSEADDR, as PyTorch's TCPStore and this project's collectives do. */
int nodes_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

int nodes_open(struct nodes *n, const struct options *o, const char *run_id, struct err *err) MUST_CHECK;
void nodes_close(struct nodes *n);

/* Between two rounds: the agent's next step. NODES_START: *identity is filled in, start the ranks. NODES_WAIT:
 * wait for the next change. NODES_END: the run has ended, or this node is out of it. *begun is true once after a
 * round of this node has ended and a new one forms; view->state.why then says why. */
enum nodes_step nodes_gather(struct nodes *n, struct env_round *identity, bool *begun);

/* The run's state while this node's round runs, else NULL. */
const struct meeting_state *nodes_running(const struct nodes *n);

/* Report to the other nodes: the root cause among this node's ranks (see exit_root_cause; the first call of a
 * round counts), or its suspect where the round hangs (`hung`, else NULL); that this launcher itself failed; that all its ranks
 * have ended and were reaped (good: with status 0). `host` is this node's name. */
void nodes_failed(struct nodes *n, const struct exit_worker *w, int unsure, const struct suspect *hung,
                  const char *host);
void nodes_broken(struct nodes *n, const struct err *why, const char *host);
void nodes_rested(struct nodes *n, bool good);

/* Whether the run has ended well without this node, although its number of nodes is fixed: others had the places of all its
 * nodes. */
bool nodes_surplus(const struct nodes *n);
/* After NODES_END: the exit status. *mine: this node ended the run, by one of its ranks or its launcher. */
int nodes_verdict(const struct nodes *n, bool *mine);

/* The meeting's root cause as a worker, for the report. Its strings point into the view. */
struct exit_worker nodes_remote_worker(const struct nodes *n);

#endif
