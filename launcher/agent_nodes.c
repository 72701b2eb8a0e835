/* agent_nodes.c - the launcher's main loop for several nodes: the leader begins and ends rounds. */
#include "common/clock.h"
#include "common/contract.h"
#include "launcher/agent_state.h"
#include "launcher/process.h"

#include <string.h>

static void say_waiting(struct agent *g)
{
    const int64_t now_ms = clock_mono_ms();
    char text[WAITING_BYTES];

    if (!waiting_due(&g->waiting, g->nodes.view, now_ms))
        return;
    waiting_format(&g->waiting, &g->nodes, now_ms, text);
    agent_say(g, "torchrun: %s\n", text);
}

/* Wait until a round begins with this node as a member (1) or the run has ended (0). */
static int gather(struct agent *g)
{
    waiting_begin(&g->waiting, clock_mono_ms());
    for (;;) {
        bool begun;
        if (g->signal) {
            meet_leave(g->nodes.meet, g->signal);
            return 0;
        }
        enum nodes_step step = nodes_gather(&g->nodes, &g->identity, &begun);
        if (begun)
            agent_say(g, "torchrun: %s\n", g->nodes.view->state.why);
        if (step != NODES_WAIT) {
            waiting_end(&g->waiting);
            return step == NODES_START;
        }
        say_waiting(g);
        agent_turn(g);
    }
}

/* Run this node's ranks of a round: report failures and their end to the leader, and stop them when the round
 * is over. */
static void run_among_nodes(struct agent *g)
{
    bool unwanted = false;
    int unsure;

    while (!round_over(&g->round)) {
        agent_turn(g);
        if (g->signal)
            meet_leave(g->nodes.meet, g->signal);
        unwanted = unwanted || g->nodes.view->must_stop;
        if (unwanted)
            round_stop(&g->round, SIGTERM);
        if (!g->round.failed || g->round.state == ROUND_RUNNING || g->round.state == ROUND_WAITING)
            continue;
        agent_read_messages(g);
        int root = exit_root_cause(g->round.workers, g->round.n, &unsure);
        if (root >= 0 && !g->signal)
            nodes_failed(&g->nodes, &g->round.workers[root], unsure, NULL, g->host);
    }
    logs_end(&g->logs, AGENT_FLUSH_MS);
    const bool bad = agent_hang_end(g) || g->round.failed || g->signal || unwanted;
    process_sweep();
    nodes_rested(&g->nodes, !bad);
    meet_look(g->nodes.meet, g->nodes.view);
}

/* Print how the run ended, with the root cause after this node's own failures; returns the exit status. */
static int conclude(struct agent *g)
{
    const struct meet_view *v = g->nodes.view;
    bool mine;
    int unsure;
    char name[32];
    const int status = nodes_verdict(&g->nodes, &mine);
    if (mine && v->state.cause.strength)
        agent_hang_blame(g);
    const int own = exit_root_cause(g->round.workers, g->round.n, &unsure), n = g->round.n;
    const bool failed =
        v->state.stage == STAGE_ENDED && v->state.end == END_FAILED && v->state.cause.rank >= 0;

    if (failed && mine && own >= 0) {
        agent_report(g, g->round.workers, n, own);
        return status;
    }
    if (g->signal) {
        agent_say(g, "torchrun: stopped by %s\n", exit_signal_name(g->signal, name));
        return EXIT_CODE_SIGNAL_BASE + g->signal;
    }
    if (failed) {
        struct exit_worker *all = arena_array(&g->arena, (size_t)n + 1, struct exit_worker);
        memcpy(all, g->round.workers, (size_t)n * sizeof(*all));
        all[n] = nodes_remote_worker(&g->nodes);
        agent_report(g, all, n + 1, n);
    } else if (v->state.stage == STAGE_ENDED && v->state.end != END_SUCCESS)
        agent_say(g, "torchrun: %s\n", v->state.why);
    else if (nodes_surplus(&g->nodes))
        agent_say(g,
                  "torchrun: the run has ended well without this node (%s): other nodes filled its %d "
                  "places (--nnodes). Was it started twice, or has a foreign launcher joined?\n",
                  g->host, g->options->nnodes);
    else if (v->err.kind && v->state.stage != STAGE_ENDED)
        agent_say(g, "torchrun: %s\n", v->err.msg);
    else if (v->state.stage != STAGE_ENDED)
        agent_say(g, "torchrun: rendezvous at %s:%d: no place became free within %.3g s (--nnodes)\n",
                  g->options->meeting.host, g->options->meeting.port,
                  (double)g->options->meeting.node.join_ms / 1000);
    return status;
}

int agent_run_nodes(struct agent *g, int *status, struct err *err)
{
    if (nodes_open(&g->nodes, g->options, g->identity.run_id, err) < 0) {
        nodes_close(&g->nodes);
        return -1;
    }
    g->meets = true;
    while (gather(g)) {
        if (agent_start_round(g, err) == 0) {
            run_among_nodes(g);
            continue;
        }
        /* Report it, so that the other nodes do not wait for these ranks. */
        nodes_broken(&g->nodes, err, g->host);
        gather(g);
        nodes_close(&g->nodes);
        return -1;
    }
    *status = conclude(g);
    nodes_close(&g->nodes);
    return 0;
}
