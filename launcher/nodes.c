/* nodes.c - this node's part in the meeting of several nodes, over rendezvous/member.h. */
#include "launcher/nodes.h"
#include "common/clock.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/text.h"
#include "launcher/machine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

int nodes_open(struct nodes *n, const struct options *o, const char *run_id, struct err *err)
{
    const struct options_meeting *m = &o->meeting;
    const struct member_config c = {
        .host = m->host,
        .port = m->port,
        .run_id = run_id,
        .hosts = m->is_host < 0 ? MEMBER_HOSTS_AUTO
                 : m->is_host   ? MEMBER_HOSTS
                                : MEMBER_HOSTS_NOT,
        .addr = m->local_addr,
        .quorum = {.min = o->nnodes_min,
                   .max = o->nnodes,
                   .fixed_ranks = o->is_static,
                   .restarts = o->max_restarts,
                   .join_ms = m->join_ms,
                   .last_call_ms = m->last_call_ms,
                   .keep_alive_ms = m->keep_alive_ms,
                   .keep_alive_attempts = m->keep_alive_attempts,
                   .master_addr = o->master_addr,
                   .master_port = o->master_port},
    };

    *n = (struct nodes){.options = o, .round = -1, .held = -1};
    n->view = memory_must(calloc(1, sizeof(*n->view)));
    n->member = member_start(&c, err);
    return n->member ? 0 : -1;
}

static void release_port(struct nodes *n)
{
    if (n->held >= 0)
        close(n->held);
    n->held = -1;
}

void nodes_close(struct nodes *n)
{
    const struct options_meeting *m = &n->options->meeting;

    if (n->member && n->view->state.stage != STAGE_ENDED && n->say.phase)
        nodes_leave(n, 0);
    /* Wait for other nodes no longer than it takes to detect that one is lost. */
    member_end(n->member, m->keep_alive_ms * (m->keep_alive_attempts + 1));
    release_port(n);
    free(n->view);
}

int nodes_fd(const struct nodes *n)
{
    return member_fd(n->member);
}

void nodes_look(struct nodes *n)
{
    member_look(n->member, n->view);
}

/* Of a longer text the beginning, cut at a character. */
static void put(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%.*s", text ? (int)text_head(text, size - 1) : 0, text ? text : "");
}

static void say(struct nodes *n, enum node_phase phase)
{
    n->say.phase = phase;
    n->say.round = n->round;
    n->say.nproc = n->options->nproc;
    n->say.wanted = n->options->meeting.order;
    put(n->say.role, sizeof(n->say.role), n->options->role);
    member_say(n->member, &n->say);
}

/* This node's rank among the members, or -1. */
static int place(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    for (int64_t i = 0; i < s->n; i++)
        if (s->members[i].ticket == n->view->ticket)
            return (int)i;
    return -1;
}

static void join(struct nodes *n, int64_t round)
{
    struct err ignored;
    int port = 0;

    release_port(n);
    n->round = round;
    n->started = n->told = false;
    n->spare_until_ms = clock_mono_ms() + n->options->meeting.join_ms;
    /* Only node 0 needs the port; if this node becomes it without one, agent_start_round fails. */
    if (machine_hold_port(&port, &n->held, &ignored) < 0)
        port = 0;
    n->say = (struct meeting_node){.port = port, .cause = {.rank = -1, .local_rank = -1}};
    say(n, NODE_JOINING);
}

static void start(struct nodes *n, int at, struct env_round *identity)
{
    const struct meeting_state *s = &n->view->state;

    n->started = true;
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
    say(n, NODE_RUNNING);
}

int64_t nodes_spare_ms(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    return s->stage == STAGE_RUNNING && n->round > s->round ? n->spare_until_ms : INT64_MAX;
}

enum nodes_step nodes_gather(struct nodes *n, struct env_round *identity, bool *begun)
{
    const struct meeting_state *s = &n->view->state;

    *begun = false;
    if (n->view->link == MEMBER_LOST || s->stage == STAGE_ENDED || clock_mono_ms() >= nodes_spare_ms(n))
        return NODES_END;
    if (n->view->link != MEMBER_IN || !s->version)
        return NODES_WAIT;
    const int at = s->stage == STAGE_RUNNING ? place(n) : -1;
    if (at >= 0 && n->round == s->round) {
        if (n->started) /* its ranks have ended; the leader decides what follows */
            return NODES_WAIT;
        start(n, at, identity);
        return NODES_START;
    }
    const int64_t next = s->stage == STAGE_FORMING ? s->round : s->round + 1;
    if (next != n->round) {
        *begun = n->started;
        join(n, next);
    }
    return NODES_WAIT;
}

int nodes_wait_ms(const struct nodes *n)
{
    const int64_t until_ms = nodes_spare_ms(n), left = until_ms - clock_mono_ms();

    return until_ms == INT64_MAX ? -1 : left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

bool nodes_must_stop(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    return n->view->link == MEMBER_LOST || s->stage == STAGE_ENDED || s->round != n->round;
}

bool nodes_asked(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    return s->stage == STAGE_RUNNING && s->asks && s->round == n->round && !n->told;
}

void nodes_failed(struct nodes *n, const struct exit_worker *w, int unsure, const char *host)
{
    struct meeting_cause *c = &n->say.cause;

    if (n->told)
        return;
    n->told = true;
    *c = (struct meeting_cause){.rank = w->rank,
                                .local_rank = w->local_rank,
                                .pid = w->pid,
                                .status = w->status & 0xffff,
                                .wall_ms = w->wall_ms,
                                .unsure = unsure};
    put(c->host, sizeof(c->host), host);
    put(c->error_file, sizeof(c->error_file), w->error_file);
    put(c->message, sizeof(c->message), w->message);
    say(n, NODE_FAILED);
}

void nodes_broken(struct nodes *n, const struct err *why, const char *host)
{
    struct meeting_cause *c = &n->say.cause;

    *c = (struct meeting_cause){.rank = -1, .local_rank = -1, .status = exit_error_code(why) << 8};
    put(c->host, sizeof(c->host), host);
    snprintf(c->message, sizeof(c->message), "%.200s: %.240s", host, why->msg);
    say(n, NODE_FAILED);
}

int64_t nodes_ended(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    return s->stage == STAGE_RUNNING && s->round == n->round ? s->done : 0;
}

void nodes_quiet(struct nodes *n, bool quiet, int64_t number, int64_t call)
{
    if (n->say.phase != NODE_RUNNING || n->say.quiet == quiet)
        return;
    n->say.quiet = quiet;
    n->say.done = quiet ? nodes_ended(n) : 0;
    n->say.number = quiet ? number : 0;
    n->say.call = quiet ? call : 0;
    say(n, NODE_RUNNING);
}

bool nodes_hung(const struct nodes *n)
{
    const struct meeting_state *s = &n->view->state;

    return s->stage == STAGE_RUNNING && s->hung && s->round == n->round;
}

void nodes_suspect(struct nodes *n, const struct meeting_cause *cause, const char *host, const char *message)
{
    if (n->told)
        return;
    n->told = true;
    n->say.cause = *cause;
    put(n->say.cause.host, sizeof(n->say.cause.host), host);
    put(n->say.cause.message, sizeof(n->say.cause.message), message);
    say(n, NODE_FAILED);
}

void nodes_done(struct nodes *n)
{
    say(n, NODE_DONE);
}

void nodes_leave(struct nodes *n, int signal)
{
    if (n->say.phase == NODE_LEAVING)
        return;
    n->say.signal = signal;
    say(n, NODE_LEAVING);
}

void nodes_say_steps(struct nodes *n, const struct steps *steps)
{
    n->say.steps = *steps;
    member_say_steps(n->member, steps);
}

bool nodes_steps(const struct nodes *n, struct steps *ret)
{
    return member_steps(n->member, ret);
}

int nodes_verdict(const struct nodes *n, bool *mine)
{
    const struct member_view *v = n->view;

    *mine = v->state.blame && v->state.blame == v->ticket;
    if (v->state.stage != STAGE_ENDED) {
        if (v->link != MEMBER_LOST) /* no place became free in time */
            return EXIT_CODE_RETRYABLE;
        return exit_error_code(&v->err);
    }
    switch ((enum meeting_end)v->state.end) {
    case END_NONE:
    case END_SUCCESS:
        return EXIT_CODE_OK;
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
