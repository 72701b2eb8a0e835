/* agent_nodes.c - the launcher's main loop for several nodes: the leader (rendezvous/meet.h) begins and ends rounds. */
#include "common/clock.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/text.h"
#include "launcher/agent_state.h"
#include "launcher/process.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int agent_hold_port(int *ret, int *held, struct err *err)
{
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(fd, (struct sockaddr *)&addr, len) < 0 || getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot find a free port for MASTER_PORT");
    *ret = ntohs(addr.sin_port);
    close_fd(held);
    *held = TAKE_FD(fd);
    return 0;
}

/* Reserve a free port for MASTER_PORT; 0: none. Only node 0 needs one; if this node becomes node 0 without a
 * port, agent_start_round fails. */
static int hold_port(struct agent *g)
{
    struct err ignored;
    int port = 0;

    return agent_hold_port(&port, &g->port_held, &ignored) < 0 ? 0 : port;
}

static int open_nodes(struct agent *g, struct err *err)
{
    const struct options *o = g->options;
    struct meet_config c = o->meeting;

    c.node.run_id = g->identity.run_id;
    c.node.nproc = o->nproc;
    c.node.role = o->role;
    c.node.port = hold_port(g);
    c.quorum = (struct quorum_config){.min = o->nnodes_min,
                                      .max = o->nnodes,
                                      .fixed_ranks = o->is_static,
                                      .restarts = o->max_restarts,
                                      .join_ms = c.node.join_ms,
                                      .last_call_ms = c.quorum.last_call_ms,
                                      .stop_ms = o->shutdown_timeout_ms + AGENT_KILL_GRACE_MS,
                                      .keep_alive_ms = c.node.keep_alive_ms,
                                      .keep_alive_attempts = c.node.keep_alive_attempts,
                                      .master_addr = o->master_addr,
                                      .master_port = o->master_port};
    g->nodes = (struct nodes){.round = -1, .view = memory_must(calloc(1, sizeof(*g->nodes.view)))};
    g->nodes.meet = meet_start(&c, err);
    return g->nodes.meet ? 0 : -1;
}

static void close_nodes(struct agent *g)
{
    const struct node_config *m = &g->options->meeting.node;

    /* Wait for other nodes no longer than it takes to detect that one is lost. */
    meet_end(g->nodes.meet, m->keep_alive_ms * (m->keep_alive_attempts + 1));
    g->nodes.meet = NULL;
    free(g->nodes.view);
}

/* A round begins in which this node has node rank `at`. */
static void begin(struct agent *g, int at)
{
    const struct meeting_state *s = &g->nodes.view->state;
    struct env_round *identity = &g->identity;

    g->nodes.round = s->round;
    g->nodes.again = true;
    snprintf(g->nodes.master_addr, sizeof(g->nodes.master_addr), "%s", s->master_addr);
    identity->node = at;
    identity->nodes = (int)s->n;
    identity->first_rank = identity->world = identity->first_of_role = identity->role_world = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int ranks = (int)s->members[i].nproc,
                  of_role = s->members[i].role == s->members[at].role ? ranks : 0;
        identity->first_rank += i < at ? ranks : 0;
        identity->world += ranks;
        identity->first_of_role += i < at ? of_role : 0;
        identity->role_world += of_role;
    }
    identity->restart_count = (int)s->restarts;
    identity->master_addr = g->nodes.master_addr;
    identity->master_port = (int)s->master_port;
    if (at > 0)
        close_fd(&g->port_held);
}

const struct meeting_state *agent_running(const struct agent *g)
{
    const struct meeting_state *s = g->nodes.meet ? &g->nodes.view->state : NULL;

    return s && s->stage == STAGE_RUNNING && s->round == g->nodes.round ? s : NULL;
}

/* Copy a text; truncate it at a character's boundary. */
static void put(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%.*s", text ? (int)text_head(text, size - 1) : 0, text ? text : "");
}

void agent_tell_failure(struct agent *g, const struct exit_worker *w, int unsure, const struct suspect *hung)
{
    struct meeting_cause c = {.rank = w->rank,
                              .local_rank = w->local_rank,
                              .pid = w->pid,
                              .status = w->status & 0xffff,
                              .wall_ms = w->wall_ms,
                              .unsure = unsure,
                              .strength = hung ? hung->strength : STRENGTH_NONE,
                              .place = hung ? hung->place : 0,
                              .number = hung ? hung->number : 0};

    put(c.host, sizeof(c.host), g->host);
    put(c.error_file, sizeof(c.error_file), w->error_file);
    put(c.message, sizeof(c.message), w->message);
    meet_failed(g->nodes.meet, &c);
}

/* This launcher itself failed: the other nodes must not wait for its ranks. */
static void tell_broken(struct agent *g, const struct err *why)
{
    char message[MEETING_MESSAGE_BYTES];
    const struct exit_worker w = {
        .rank = -1, .local_rank = -1, .status = exit_error_code(why) << 8, .message = message};

    snprintf(message, sizeof(message), "%.200s: %.240s", g->host, why->msg);
    agent_tell_failure(g, &w, 0, NULL);
    meet_ranks_ended(g->nodes.meet, false);
}

static void say_waiting(struct agent *g)
{
    const int64_t now_ms = clock_mono_ms();
    char text[WAITING_BYTES];

    if (!waiting_due(&g->waiting, g->nodes.view, now_ms))
        return;
    waiting_format(&g->waiting, g->options, g->nodes.view, now_ms, text);
    agent_say(g, "torchrun: %s\n", text);
}

/* Wait until a round begins with this node as a member (true) or the run has ended (false). */
static bool gather(struct agent *g)
{
    struct nodes *n = &g->nodes;
    int rank;

    waiting_begin(&g->waiting, clock_mono_ms());
    for (;;) {
        if (g->signal) {
            meet_leave(n->meet, g->signal);
            return false;
        }
        if (n->again && n->view->stage == NODE_WAITS && n->view->round > n->round) {
            n->again = false;
            agent_say(g, "torchrun: %s\n", n->view->state.why);
        }
        const bool over = n->view->stage == NODE_OVER;
        if (over || (n->view->state.stage == STAGE_RUNNING && meet_begins(n->meet, &rank, n->view))) {
            g->waiting.due_ms = 0;
            if (!over)
                begin(g, rank);
            return !over;
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
            agent_tell_failure(g, &g->round.workers[root], unsure, NULL);
    }
    logs_end(&g->logs, AGENT_FLUSH_MS);
    const bool bad = agent_hang_end(g) || g->round.failed || g->signal || unwanted;
    process_sweep();
    meet_offer_port(g->nodes.meet, hold_port(g)); /* the next round may need one at once */
    meet_ranks_ended(g->nodes.meet, !bad);
    meet_look(g->nodes.meet, g->nodes.view);
}

/* Whether other nodes have filled a run with a fixed number of nodes. */
static bool is_surplus(const struct agent *g)
{
    const struct meeting_state *s = &g->nodes.view->state;
    bool member = g->options->nnodes_min != g->options->nnodes;

    for (int64_t i = 0; i < s->n; i++)
        member = member || s->members[i].ticket == g->nodes.view->ticket;
    return !member;
}

/* The run's root cause on another node, for the report. Its strings point into the view. */
static struct exit_worker remote_worker(const struct agent *g)
{
    const struct meeting_cause *c = &g->nodes.view->state.cause;

    return (struct exit_worker){
        .rank = (int)c->rank,
        .local_rank = (int)c->local_rank,
        .pid = (pid_t)c->pid,
        .status = (int)c->status,
        .wall_ms = c->wall_ms,
        .host = c->host,
        .error_file = c->error_file[0] ? c->error_file : NULL,
        .message = c->message[0] ? c->message : NULL,
    };
}

static void report_remote(struct agent *g)
{
    const int n = g->round.n;
    struct exit_worker *all = arena_array(&g->arena, (size_t)n + 1, struct exit_worker);

    memcpy(all, g->round.workers, (size_t)n * sizeof(*all));
    all[n] = remote_worker(g);
    agent_report(g, all, n + 1, n);
}

/* Print how the run ended, with the root cause after this node's own failures; returns the exit status: 140 on nodes
 * that did not cause the failure, so that the operator, which compares all pods, can tell which one did. */
static int conclude(struct agent *g)
{
    const struct meet_view *v = g->nodes.view;
    const struct meeting_state *s = &v->state;
    const bool ended = s->stage == STAGE_ENDED, failed = ended && s->end == END_FAILED;
    const bool mine = s->blame && s->blame == v->ticket; /* it ended by a rank or the launcher of this node */
    int unsure;
    char name[32];

    if (mine && s->cause.strength)
        agent_hang_blame(g);
    const int own = exit_root_cause(g->round.workers, g->round.n, &unsure);
    if (failed && s->cause.rank >= 0 && mine && own >= 0)
        agent_report(g, g->round.workers, g->round.n, own);
    else if (g->signal) {
        agent_say(g, "torchrun: stopped by %s\n", exit_signal_name(g->signal, name));
        return EXIT_CODE_SIGNAL_BASE + g->signal;
    } else if (failed && s->cause.rank >= 0)
        report_remote(g);
    else if (ended && s->end != END_SUCCESS)
        agent_say(g, "torchrun: %s\n", s->why);
    if (failed)
        return mine ? exit_status_code((int)s->cause.status) : EXIT_CODE_PEER_LOST;
    if (!ended && v->err.kind) {
        agent_say(g, "torchrun: %s\n", v->err.msg);
        return exit_error_code(&v->err);
    }
    if (!ended) {
        agent_say(g, "torchrun: rendezvous at %s:%d: no place became free within %.3g s (--nnodes)\n",
                  g->options->meeting.host, g->options->meeting.port,
                  (double)g->options->meeting.node.join_ms / 1000);
        return EXIT_CODE_RETRYABLE;
    }
    if (s->end != END_SUCCESS)
        return s->end == END_TIMEOUT ? EXIT_CODE_RETRYABLE : EXIT_CODE_PEER_LOST;
    if (!is_surplus(g))
        return EXIT_CODE_OK;
    agent_say(g,
              "torchrun: the run has ended well without this node (%s): other nodes filled its %d places "
              "(--nnodes). Was it started twice, or has a foreign launcher joined?\n",
              g->host, g->options->nnodes);
    return EXIT_CODE_ERROR;
}

int agent_run_nodes(struct agent *g, int *status, struct err *err)
{
    int rc = open_nodes(g, err);

    while (rc == 0 && gather(g))
        if ((rc = agent_start_round(g, err)) == 0)
            run_among_nodes(g);
    if (rc == 0)
        *status = conclude(g);
    else if (g->nodes.meet) {
        tell_broken(g, err);
        gather(g);
    }
    close_nodes(g);
    return rc;
}
