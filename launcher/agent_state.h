/* agent_state.h - the struct that the files agent*.c share. No other file includes it. */
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
    struct arena arena; /* of the whole run */
    struct arena said;  /* what this round's ranks left in their error files */
    struct logs logs;
    struct round round;
    struct env_round identity;
    struct tracker tracker;
    struct pollfd *pfds;
    int port_held;                       /* a socket that reserves the MASTER_PORT chosen here; -1: none */
    int kept_data, key_file, rank_state; /* the memory files of `identity`; -1: none */
    struct rank_slot *slots; /* [nproc] of rank_state; any rank may write them at any time; NULL: none */
    struct straggler straggler;
    int64_t look_ms;    /* when to look again at what the ranks have left in `slots` and the progress file */
    int signals;        /* a signalfd */
    int signal;         /* the first signal that ends the run; 0: none */
    bool meets;         /* several nodes may take part: `nodes` is open */
    struct nodes nodes; /* with `meets` */
    struct waiting waiting; /* messages while waiting for other nodes */
    struct hang hang;
    char host[HOST_NAME_MAX + 1];
    const char *report; /* path of the termination message; NULL: none is written */
};

/* Print to stderr; waits at most AGENT_FLUSH_MS, because the signals that end the run are blocked, and not at all while a hang is
 * judged: the other nodes wait for this one's suspect. */
void agent_say(struct agent *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print torchrun's block for a failed run (exit_report) of the n workers with root cause `root`. When w is this
 * node's own ranks, also write the termination report. */
void agent_report(struct agent *g, const struct exit_worker *w, int n, int root);

/* The run succeeded: leave the last progress (answer.h) as the termination message, since whoever polls has seen an earlier one. */
void agent_leave_progress(struct agent *g);

/* Set the messages of the ranks that have ended from their error files. */
void agent_read_messages(struct agent *g);

/* While the failure of a rank, here or on another node, may follow from another's: read the ranks' error files and
 * the end of their stderr, so that exit_root_cause can choose by them. */
void agent_hear_ranks(struct agent *g);

/* Start all ranks of this node. On failure no rank is left. */
int agent_start_round(struct agent *g, struct err *err) MUST_CHECK;

/* Wait for one event (output, a signal, an exited rank, the meeting, a deadline) and act on it. The launcher
 * sleeps only here. */
void agent_turn(struct agent *g);

/* agent_hang.c: watch a round for signs of life, where options->progress_timeout_ms says so; else these do nothing.
 * open: before the first round, also when logs are not open yet. begin: the ranks have been started. step: after each event.
 * due_ms: as round_due_ms. end: the round is over and the logs are read; true if it hung, and then
 * the suspect has been told. blame: this node's suspect counts as the failed rank, with exit code 138. */
void agent_hang_open(struct agent *g);
void agent_hang_begin(struct agent *g);
void agent_hang_step(struct agent *g);
int64_t agent_hang_due_ms(const struct agent *g);
bool agent_hang_end(struct agent *g);
void agent_hang_blame(struct agent *g);

/* agent_ranks.c: fill hang.found. look_at_ranks: the first look. look_again: HANG_LOOK_MS later, at one rank. abort_ranks: abort the
 * Python processes of each that is not in uninterruptible sleep, one after the other; true when all of them have ended. look_last: at a rank when the stacks have been
 * read: a Python process that still is there without one is in uninterruptible sleep. */
void agent_look_at_ranks(struct agent *g);
void agent_look_again(struct agent *g, int local, int64_t now_ms);
bool agent_abort_ranks(struct agent *g);
void agent_look_last(struct agent *g, int local);

/* With several nodes: run rounds until the meeting ends the run; *status is the exit status. */
int agent_run_nodes(struct agent *g, int *status, struct err *err) MUST_CHECK;

#endif
