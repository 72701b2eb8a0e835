/* nodes.c - this node in a run of several nodes, by rendezvous/meet.h. */
#include "launcher/nodes.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/text.h"
#include "launcher/agent.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int nodes_hold_port(int *ret, int *held, struct err *err)
{
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(fd, (struct sockaddr *)&addr, len) < 0 || getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot find a free port for MASTER_PORT");
    *ret = ntohs(addr.sin_port);
    *held = TAKE_FD(fd);
    return 0;
}

/* Reserve a free port for MASTER_PORT; 0: none. Only node 0 needs one; if this node becomes node 0 without a
 * port, agent_start_round fails. */
static int hold_port(struct nodes *n)
{
    struct err ignored;
    int port = 0;

    return nodes_hold_port(&port, &n->held, &ignored) < 0 ? 0 : port;
}

int nodes_open(struct nodes *n, const struct options *o, const char *run_id, struct err *err)
{
    struct meet_config c = o->meeting;

    c.node.run_id = run_id;
    c.node.nproc = o->nproc;
    c.node.role = o->role;
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
    *n = (struct nodes){.options = o, .round = -1, .held = -1};
    n->view = memory_must(calloc(1, sizeof(*n->view)));
    c.node.port = hold_port(n);
    n->meet = meet_start(&c, err);
    return n->meet ? 0 : -1;
}

static void release_port(struct nodes *n)
{
    if (n->held >= 0)
        close(n->held);
    n->held = -1;
}

void nodes_close(struct nodes *n)
{
    const struct node_config *m = &n->options->meeting.node;

    /* Wait for other nodes no longer than it takes to detect that one is lost. */
    meet_end(n->meet, m->keep_alive_ms * (m->keep_alive_attempts + 1));
    release_port(n);
    free(n->view);
}

/* Copy a text; truncate it at a character's boundary. */
static void put(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%.*s", text ? (int)text_head(text, size - 1) : 0, text ? text : "");
}

static void start(struct nodes *n, int at, struct env_round *identity)
{
    const struct meeting_state *s = &n->view->state;

    n->round = s->round;
    n->again = true;
    snprintf(n->master_addr, sizeof(n->master_addr), "%s", s->master_addr);
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
    identity->master_addr = n->master_addr;
    identity->master_port = (int)s->master_port;
    if (at > 0)
        release_port(n);
}

enum nodes_step nodes_gather(struct nodes *n, struct env_round *identity, bool *begun)
{
    const struct meet_view *v = n->view;
    int rank;

    *begun = n->again && v->stage == NODE_WAITS && v->round > n->round;
    if (*begun)
        n->again = false;
    if (v->stage == NODE_OVER || v->stage == NODE_LEAVES)
        return v->stage == NODE_OVER ? NODES_END : NODES_WAIT;
    if (v->state.stage != STAGE_RUNNING || !meet_begins(n->meet, &rank, n->view))
        return NODES_WAIT;
    start(n, rank, identity);
    return NODES_START;
}

const struct meeting_state *nodes_running(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    return s->stage == STAGE_RUNNING && s->round == n->round ? s : NULL;
}

void nodes_failed(struct nodes *n, const struct exit_worker *w, int unsure, const struct suspect *hung,
                  const char *host)
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

    put(c.host, sizeof(c.host), host);
    put(c.error_file, sizeof(c.error_file), w->error_file);
    put(c.message, sizeof(c.message), w->message);
    meet_failed(n->meet, &c);
}

void nodes_broken(struct nodes *n, const struct err *why, const char *host)
{
    char message[MEETING_MESSAGE_BYTES];
    const struct exit_worker w = {
        .rank = -1, .local_rank = -1, .status = exit_error_code(why) << 8, .message = message};

    snprintf(message, sizeof(message), "%.200s: %.240s", host, why->msg);
    nodes_failed(n, &w, 0, NULL, host);
    nodes_rested(n, false);
}

/* This round's ranks have freed their port; the next round may need one at once. */
void nodes_rested(struct nodes *n, bool good)
{
    release_port(n);
    meet_offer_port(n->meet, hold_port(n));
    meet_ranks_ended(n->meet, good);
}

bool nodes_surplus(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;
    const struct options *o = n->options;

    if (s->stage != STAGE_ENDED || s->end != END_SUCCESS || o->nnodes_min != o->nnodes)
        return false;
    for (int64_t i = 0; i < s->n; i++)
        if (s->members[i].ticket == n->view->ticket)
            return false;
    return true;
}

int nodes_verdict(const struct nodes *n, bool *mine)
{
    const struct meet_view *v = n->view;

    *mine = v->state.blame && v->state.blame == v->ticket;
    if (v->state.stage != STAGE_ENDED) /* no error: the run had no place for this node in time */
        return v->err.kind ? exit_error_code(&v->err) : EXIT_CODE_RETRYABLE;
    switch ((enum meeting_end)v->state.end) {
    case END_NONE:
    case END_SUCCESS:
        return nodes_surplus(n) ? EXIT_CODE_ERROR : EXIT_CODE_OK;
    case END_FAILED:
        return *mine ? exit_status_code((int)v->state.cause.status) : EXIT_CODE_PEER_LOST;
    case END_SIGNAL:
    case END_LOST:
        return EXIT_CODE_PEER_LOST;
    case END_TIMEOUT:
        return EXIT_CODE_RETRYABLE;
    }
    return EXIT_CODE_ERROR;
}

struct exit_worker nodes_remote_worker(const struct nodes *n)
{
    const struct meeting_cause *c = &n->view->state.cause;

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
