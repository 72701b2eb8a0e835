/* agent_state.h - struct agent, which only the files agent*.c use. */
#ifndef TK_LAUNCHER_AGENT_STATE_H
#define TK_LAUNCHER_AGENT_STATE_H

#include "host/rank_state.h"
#include "launcher/agent.h"
#include "launcher/env.h"
#include "launcher/exit.h"
#include "launcher/hang.h"
#include "launcher/logs.h"
#include "launcher/progress/tracker.h"
#include "launcher/round.h"
#include "launcher/straggler.h"
#include "launcher/suspect.h"
#include "launcher/waiting.h"

#include <limits.h>

/* This node in a run of several. */
struct nodes {
    struct meet *meet;      /* NULL: the run has one node */
    struct meet_view *view; /* the last one copied by meet_look */
    int64_t round;          /* the last round that this node started; -1: none yet */
    bool again;             /* the launcher has not printed yet why that round is over */
    char master_addr[MEETING_NAME_BYTES];
};

struct agent {
    const struct options *options;
    char *const *env;
    struct arena arena;  /* of the whole run */
    struct arena errors; /* texts of the error files of this round's ranks */
    struct logs logs;
    struct round round;
    struct env_round identity;
    struct tracker tracker;
    struct pollfd *pfds;
    int port_held; /* a socket that reserves the MASTER_PORT chosen or offered here; -1: none */
    int kept_data, key_file, rank_state; /* the memory files of `identity`; -1: none */
    struct rank_slot *slots;             /* [nproc] in rank_state; ranks write them at any time; NULL: none */
    struct straggler straggler;
    int64_t look_ms; /* when to read `slots` and the progress file again */
    int signals;     /* a signalfd */
    int signal;      /* the first signal that ends the run; 0: none */
    struct nodes nodes;
    struct waiting waiting; /* messages while waiting for other nodes */
    struct hang hang;
    char host[HOST_NAME_MAX + 1];
    const char *report; /* path of the termination message; NULL: do not write one */
};

/* Print to stderr. Waits at most AGENT_FLUSH_MS for the console, because the signals that end the run are
 * blocked; not at all while the launcher looks for a hung rank, because the other nodes wait for its
 * result. */
void agent_say(struct agent *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print torchrun's block for a failed run (exit_report) of the n workers with root cause `root`. When w is this
 * node's own ranks, also write the termination report. */
void agent_report(struct agent *g, const struct exit_worker *w, int n, int root);

/* The run succeeded: write the last progress (answer.h) as the termination message, since clients that poll
 * have an older one. */
void agent_leave_progress(struct agent *g);

/* Read the error files of the ranks that have ended, and set their messages. */
void agent_read_messages(struct agent *g);

/* While another rank may have caused a rank's failure, here or on another node: read the ranks' error files
 * and the end of their stderr, so that exit_root_cause can use them. */
void agent_read_ranks(struct agent *g);

/* Start all ranks of this node. On failure no rank runs. */
int agent_start_round(struct agent *g, struct err *err) MUST_CHECK;

/* Wait for one event (output, a signal, an exited rank, the rendezvous, a deadline) and act on it. The
 * launcher sleeps only here. */
void agent_turn(struct agent *g);

/* Detect a hang, if options->progress_timeout_ms > 0; else these do nothing. Call open before
 * logs_open, begin when the ranks have started, step after each event. due_ms: when to call step at the
 * latest. end: when the round is over and the logs are read; true if it hung (the launcher has then reported
 * its suspect). blame: mark this node's suspect as the failed rank, with exit code 138. */
void agent_hang_open(struct agent *g);
void agent_hang_begin(struct agent *g);
void agent_hang_step(struct agent *g);
int64_t agent_hang_due_ms(const struct agent *g);
bool agent_hang_end(struct agent *g);
void agent_hang_blame(struct agent *g);

/* Find a free TCP port and bind the socket *held to it, in place of another one. While it is open, the kernel
 * does not assign the port to other sockets (an outgoing connection, another launcher). A process can still
 * listen at this port with SO_REUSEADDR, as PyTorch's TCPStore and this project's collectives do. */
int agent_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

/* With several nodes: run rounds until the leader ends the run; *status is the exit status. */
int agent_run_nodes(struct agent *g, int *status, struct err *err) MUST_CHECK;

/* With several nodes: the run's state while this node's round runs, else NULL. */
const struct meeting_state *agent_running(const struct agent *g);

/* Report to the leader the root cause among this node's ranks (see exit_root_cause; only the first call of a round has
 * an effect), or the suspect if the round hangs (`hung`, else NULL). */
void agent_tell_failure(struct agent *g, const struct exit_worker *w, int unsure, const struct suspect *hung);

#endif
