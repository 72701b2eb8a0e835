/* agent_state.h - the struct that agent.c and agent_nodes.c share. No other file includes it. */
#ifndef TK_LAUNCHER_AGENT_STATE_H
#define TK_LAUNCHER_AGENT_STATE_H

#include "launcher/agent.h"
#include "launcher/env.h"
#include "launcher/exit.h"
#include "launcher/logs.h"
#include "launcher/nodes.h"
#include "launcher/round.h"
#include "launcher/waiting.h"

#include <limits.h>

struct agent {
    const struct options *options;
    char *const *env;
    struct arena arena; /* of the whole run */
    struct logs logs;
    struct round round;
    struct env_round identity;
    struct pollfd *pfds;
    int port_held;          /* keeps the MASTER_PORT that we chose; -1: none */
    int signals;            /* a signalfd */
    int signal;             /* that ends the run; 0: none */
    bool meets;             /* there may be other nodes */
    struct nodes nodes;     /* if so */
    struct waiting waiting; /* for them */
    char host[HOST_NAME_MAX + 1];
    const char *report; /* the file for why we failed; NULL: nobody asks */
};

/* To stderr, and never for long: the signals that end the run are blocked. */
void agent_say(struct agent *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The block of a failed run, rank `root` of the n last; when it is one of our own, the report as well. */
void agent_report(struct agent *g, const struct exit_worker *w, int n, int root);

/* Put what the ranks wrote into their error files with them. */
void agent_read_messages(struct agent *g);

/* On failure no rank is left. */
int agent_start_round(struct agent *g, struct err *err) MUST_CHECK;

/* Wait for something to happen and act on it: the only place where the launcher sleeps. */
void agent_turn(struct agent *g);

/* Several nodes: rounds until they have agreed on an end. */
int agent_run_nodes(struct agent *g, int *status, struct err *err) MUST_CHECK;

#endif
