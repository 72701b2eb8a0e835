/* agent_state.h - struct agent, which only the files agent*.c use. */
#ifndef TK_LAUNCHER_AGENT_STATE_H
#define TK_LAUNCHER_AGENT_STATE_H

#include "host/rank_state.h"
#include "launcher/agent.h"
#include "launcher/env.h"
#include "launcher/exit.h"
#include "launcher/hang.h"
#include "launcher/logs.h"
#include "launcher/nodes.h"
#include "launcher/progress/tracker.h"
#include "launcher/round.h"
#include "launcher/straggler.h"
#include "launcher/waiting.h"

#include <limits.h>

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
    int port_held;                       /* a socket that reserves the MASTER_PORT chosen here; -1: none */
    int kept_data, key_file, rank_state; /* the memory files of `identity`; -1: none */
    struct rank_slot *slots;             /* [nproc] in rank_state; ranks write them at any time; NULL: none */
    struct straggler straggler;
    int64_t look_ms;        /* when to read `slots` and the progress file again */
    int signals;            /* a signalfd */
    int signal;             /* the first signal that ends the run; 0: none */
    bool meets;             /* the run may have several nodes: `nodes` is open */
    struct nodes nodes;     /* with `meets` */
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

/* agent_hang.c: detect a hang, if options->progress_timeout_ms > 0; else these do nothing. Call open before
 * logs_open, begin when the ranks have started, step after each event. due_ms: when to call step at the
 * latest. end: when the round is over and the logs are read; true if it hung (the launcher has then reported
 * its suspect). blame: mark this node's suspect as the failed rank, with exit code 138. */
void agent_hang_open(struct agent *g);
void agent_hang_begin(struct agent *g);
void agent_hang_step(struct agent *g);
int64_t agent_hang_due_ms(const struct agent *g);
bool agent_hang_end(struct agent *g);
void agent_hang_blame(struct agent *g);

/* agent_ranks.c: examine the ranks' processes and fill hang.found. look_at_ranks: first reading. look_again:
 * second reading of one rank, HANG_LOOK_MS later. abort_ranks: abort the Python processes of ranks that are
 * not in uninterruptible sleep, one at a time; true when all have ended. look_last: after the stacks are
 * read: a Python process that is still alive without a stack is in uninterruptible sleep. */
void agent_look_at_ranks(struct agent *g);
void agent_look_again(struct agent *g, int local, int64_t now_ms);
bool agent_abort_ranks(struct agent *g);
void agent_look_last(struct agent *g, int local);

/* With several nodes: run rounds until the leader ends the run; *status is the exit status. */
int agent_run_nodes(struct agent *g, int *status, struct err *err) MUST_CHECK;

#endif
