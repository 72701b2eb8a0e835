/* meet.c - the rendezvous thread's loop, and the functions that the launcher's main loop calls. */
#include "rendezvous/meet.h"
#include "common/clock.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/random.h"
#include "common/thread.h"
#include "rendezvous/meet_state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { END_MS = 2000, NAME_MS = 20, SLICE_MS = 200 };

static void ring(int fd)
{
    const uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        return; /* the counter is at its maximum: readable already */
}

static void silence(int fd)
{
    uint64_t ignored;

    if (read(fd, &ignored, sizeof(ignored)) < 0)
        return; /* the counter was 0 */
}

int64_t meet_now(const struct meet *m)
{
    return clock_mono_ms() - m->awake.stopped_ms;
}

/* The time, by which deadlines are judged; the thread's. */
static int64_t look_at_clock(struct meet *m)
{
    const int64_t before_ms = m->awake.stopped_ms, now_ms = awake_now(&m->awake, clock_mono_ms());

    node_was_stopped(&m->node, m->awake.stopped_ms - before_ms);
    return now_ms;
}

static void unref(struct meet *m)
{
    pthread_mutex_lock(&m->lock);
    const bool last = --m->refs == 0;
    pthread_mutex_unlock(&m->lock);
    if (!last)
        return;
    if (m->leads) {
        leader_release(&m->leader);
        service_close(&m->service);
    }
    node_release(&m->node);
    meet_release_wires(m);
    resolver_free(m->at);
    if (m->found)
        freeaddrinfo(m->found);
    close_fd(&m->fd);
    close_fd(&m->wake);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->ended);
    arena_release(&m->strings);
    free(m);
}

/* Pass a message between the node and the leader of this process. */
static void say_here(struct meet *m, const struct message *message, int64_t now_ms)
{
    m->message = *message;
    if (m->local_link >= 0)
        (void)leader_heard(&m->leader, m->local_link, &m->message, now_ms);
}

/* The connection attempt timed out while it waited for the resolver. */
static void fail_resolution(struct meet *m)
{
    struct node_line *l = &m->node.line;
    bool failed;

    m->pending = 0;
    if (l->welcomed)
        return;
    const char *why = resolver_why(m->at, &failed); /* of the last lookup, which may have succeeded */
    m->unresolved = true;
    snprintf(l->why, sizeof(l->why), "%s", failed ? why : "no name server has answered");
}

static bool act_node(struct meet *m, int64_t now_ms)
{
    struct node_action a;
    bool any = false;

    for (; node_act(&m->node, &a, now_ms); any = true) {
        const bool here = m->leads && a.number == m->local_number;
        if (a.kind == NODE_DIAL)
            meet_dial(m, a.number, now_ms);
        else if (a.kind == NODE_SEND && here)
            say_here(m, &a.message, now_ms);
        else if (a.kind == NODE_SEND)
            meet_send(m, meet_wire_of_node(m, a.number), &a.message, now_ms);
        else if (here && m->local_link >= 0) {
            leader_closed(&m->leader, m->local_link, LINK_CLOSED, now_ms);
            m->local_link = -1;
        } else if (a.number == m->pending)
            fail_resolution(m);
        else
            meet_close_wire(m, meet_wire_of_node(m, a.number), now_ms);
    }
    return any;
}

static bool act_leader(struct meet *m, int64_t now_ms)
{
    struct leader_action a;
    bool any = false;

    if (!m->leads)
        return false;
    leader_decide(&m->leader, now_ms);
    for (; leader_act(&m->leader, &a); any = true) {
        if (a.link == m->local_link && a.kind == LEADER_SEND) {
            m->message = a.message;
            (void)node_heard(&m->node, m->local_number, &m->message, now_ms);
        } else if (a.kind == LEADER_SEND)
            meet_send(m, meet_wire_of_leader(m, a.link), &a.message, now_ms);
        else
            meet_close_wire(m, meet_wire_of_leader(m, a.link), now_ms);
    }
    return any;
}

/* Make meet_fd readable if the view has changed since the last time. */
static void notify_owner(struct meet *m)
{
    const struct node *n = &m->node;
    const bool stops = node_must_stop(n);

    if (m->notified.version == n->state->version && m->notified.stage == n->stage &&
        m->notified.stops == stops && strcmp(m->notified.why, n->line.why) == 0)
        return;
    m->notified.version = n->state->version;
    m->notified.stage = n->stage;
    m->notified.stops = stops;
    memcpy(m->notified.why, n->line.why, sizeof(m->notified.why));
    ring(m->fd);
}

/* Let leader and node act on all events so far. True: call meet_identify_foreign, without the lock. */
static bool turn(struct meet *m, int64_t now_ms)
{
    const struct node *n = &m->node;
    bool any = true;

    meet_go_on(m, now_ms);
    meet_probe(m, now_ms);
    while (any) {
        node_step(&m->node, now_ms);
        any = act_node(m, now_ms);
        any = act_leader(m, now_ms) || any;
    }
    notify_owner(m);
    return n->stage == NODE_REACHES && !m->leads && !m->pending && !m->unresolved && !n->line.met &&
           n->line.why[0] && now_ms >= m->foreign_ms;
}

/* Whether the thread may end. On the leader's host: only when the other nodes have read ENDED, or grace_ms has
 * passed. */
static bool is_done(struct meet *m, int64_t now_ms)
{
    if (m->broken.kind)
        return true;
    if (!node_over(&m->node))
        return false;
    return !m->leads || (m->stop && (quorum_over(&m->leader.quorum) || now_ms >= m->grace_ms));
}

static int wait_ms(const struct meet *m, int64_t now_ms)
{
    int64_t until = node_next_ms(&m->node, now_ms);

    if (m->leads) {
        const int64_t at = leader_next_ms(&m->leader, now_ms);
        until = at < until ? at : until;
    }
    if (m->leads && m->service.shut_until_ms && m->service.shut_until_ms - m->awake.stopped_ms < until)
        until = m->service.shut_until_ms - m->awake.stopped_ms;
    const bool names = m->pending || (m->probe_ms && m->probe_ms <= now_ms);
    const int64_t most = names ? NAME_MS : SLICE_MS, left = until - now_ms;
    return left <= 0 ? 0 : left < most ? (int)left : (int)most;
}

static void wait_for_news(struct meet *m)
{
    static const int own = 2;

    pthread_mutex_lock(&m->lock);
    const int64_t from_ms = look_at_clock(m);
    const int n = m->n_wires, ms = wait_ms(m, from_ms);
    cleanup_free struct pollfd *pfds = memory_must(calloc((size_t)n + (size_t)own, sizeof(*pfds)));
    pfds[0] = (struct pollfd){.fd = m->wake, .events = POLLIN};
    pfds[1] = (struct pollfd){.fd = m->leads ? service_listener(&m->service) : -1, .events = POLLIN};
    meet_poll_wires(m, pfds + own);
    m->awake.due_ms = from_ms + ms;
    pthread_mutex_unlock(&m->lock);
    poll(pfds, (nfds_t)(n + own), ms);
    pthread_mutex_lock(&m->lock);
    const int64_t now_ms = look_at_clock(m);
    silence(m->wake);
    meet_turn_wires(m, pfds + own, n, now_ms);
    if (pfds[1].revents)
        meet_accept(m, now_ms);
    pthread_mutex_unlock(&m->lock);
}

static void *work(void *arg)
{
    struct meet *m = arg;

    for (;;) {
        pthread_mutex_lock(&m->lock);
        const int64_t now_ms = look_at_clock(m);
        const bool identifies = turn(m, now_ms), done = is_done(m, now_ms);
        const bool asks = done ? m->broken.code == EADDRINUSE : identifies;
        pthread_mutex_unlock(&m->lock);
        if (asks)
            meet_identify_foreign(m);
        if (done)
            break;
        wait_for_news(m);
    }
    pthread_mutex_lock(&m->lock);
    m->thread_ended = true;
    pthread_cond_broadcast(&m->ended);
    pthread_mutex_unlock(&m->lock);
    ring(m->fd);
    unref(m);
    return NULL;
}

static struct meet *create(const struct meet_config *c)
{
    struct meet *m = memory_must(calloc(1, sizeof(*m)));
    pthread_condattr_t attr;

    m->refs = 1;
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->local_link = -1;
    m->config = *c;
    const char **const strings[] = {&m->config.host, &m->config.node.run_id, &m->config.node.role,
                                    &m->config.node.addr, &m->config.quorum.master_addr};
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        *strings[i] = *strings[i] ? arena_strdup(&m->strings, *strings[i]) : NULL;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->ended, &attr);
    pthread_condattr_destroy(&attr);
    m->at = resolver_new(c->host, c->port);
    random_fill(m->config.node.id, sizeof(m->config.node.id));
    random_fill(m->config.node.seed, sizeof(m->config.node.seed));
    node_init(&m->node, &m->config.node, clock_mono_ms());
    return m;
}

struct meet *meet_start(const struct meet_config *c, struct err *err)
{
    struct meet *m = create(c);
    int code = 0;

    if (m->fd < 0 || m->wake < 0)
        err_errno(err, ERR_FATAL, errno, "rendezvous: eventfd");
    else {
        m->refs = 2;
        code = thread_start(&m->thread, work, m);
        if (code == 0) {
            pthread_detach(m->thread);
            return m;
        }
        m->refs = 1;
        err_errno(err, ERR_FATAL, code, "rendezvous: cannot start a thread");
    }
    unref(m);
    return NULL;
}

int meet_fd(const struct meet *m)
{
    return m->fd;
}

/* Why the last attempt to reach the leader failed. A server that answers nothing may be a stopped leader, so
 * for FOREIGN_SILENT the message names both. */
static void why_not_reached(const struct meet *m, char out[static ERR_MSG_BYTES])
{
    const char *why = m->node.line.why;

    if (m->node.line.met)
        snprintf(out, ERR_MSG_BYTES, "%s", why);
    else if (m->foreign == FOREIGN_OTHER)
        snprintf(out, ERR_MSG_BYTES, "no launcher of this project: %s", m->foreign_text);
    else if (m->foreign == FOREIGN_SILENT)
        snprintf(out, ERR_MSG_BYTES, "%s (%s)", why, m->foreign_text);
    else
        snprintf(out, ERR_MSG_BYTES, "while trying to connect: %s", why[0] ? why : "no answer yet");
}

static void look_at_error(const struct meet *m, struct err *err)
{
    const struct meet_config *c = &m->config;
    const struct node *n = &m->node;
    char why[ERR_MSG_BYTES];

    *err = (struct err){0};
    why_not_reached(m, why);
    if (m->broken.kind && m->thread_ended) {
        err_set(err, ERR_CONFLICT, "rendezvous at %.100s:%d: this node has to host it: %.150s%s%s", c->host,
                c->port, m->broken.msg, m->foreign_text[0] ? ": " : "", m->foreign_text);
        err->code = m->broken.code;
    } else if (n->stage == NODE_REACHES && (n->line.why[0] || m->foreign == FOREIGN_OTHER)) {
        err_set(err, ERR_TIMEOUT, "%s", why);
        err->code = m->unresolved ? EAI_NONAME : 0;
    } else if (n->stage == NODE_OVER && n->over.why == NODE_WHY_NOT_REACHED)
        err_set(err, ERR_TIMEOUT, "rendezvous at %.100s:%d: not reached within %.3g s: %.150s", c->host,
                c->port, (double)c->node.join_ms / 1000, why);
    else if (n->stage == NODE_OVER && n->over.why == NODE_WHY_NO_KEY)
        err_set(err, ERR_INVALID,
                "rendezvous at %.100s:%d: %.150s: set " CONTRACT_ENV_JOB_KEY " to the same on all nodes",
                c->host, c->port, n->line.why);
    else if (n->stage == NODE_OVER && n->over.why == NODE_WHY_LOST)
        err_set(err, ERR_PEER, "rendezvous at %.100s:%d: the node that hosts it was lost: %.150s", c->host,
                c->port, n->line.why[0] ? n->line.why : "it sent nothing for too long");
}

/* With the lock held. */
static void copy_view(const struct meet *m, struct meet_view *view)
{
    const struct node *n = &m->node;

    const bool broken = m->broken.kind && m->thread_ended;

    view->stage = broken ? NODE_OVER : n->stage;
    look_at_error(m, &view->err);
    view->ticket = n->ticket;
    view->round = n->stage == NODE_WAITS                            ? n->wait.round
                  : n->stage == NODE_RUNS || n->stage == NODE_RESTS ? n->run.round
                                                                    : -1;
    view->spare_until_ms = node_spare_until_ms(n);
    if (view->spare_until_ms < INT64_MAX)
        view->spare_until_ms += m->awake.stopped_ms;
    view->must_stop = node_must_stop(n) || (broken && n->stage == NODE_RUNS);
    view->failure_reported = (n->stage == NODE_RUNS || n->stage == NODE_RESTS) && n->run.reported;
    view->state = *n->state;
}

void meet_look(struct meet *m, struct meet_view *view)
{
    pthread_mutex_lock(&m->lock);
    silence(m->fd);
    copy_view(m, view);
    pthread_mutex_unlock(&m->lock);
}

bool meet_begins(struct meet *m, int *rank, struct meet_view *view)
{
    pthread_mutex_lock(&m->lock);
    const bool begins = node_begins(&m->node, rank);
    if (begins)
        copy_view(m, view);
    pthread_mutex_unlock(&m->lock);
    ring(m->wake);
    return begins;
}

void meet_ranks_ended(struct meet *m, bool good)
{
    pthread_mutex_lock(&m->lock);
    node_ranks_ended(&m->node, good);
    pthread_mutex_unlock(&m->lock);
    ring(m->wake);
}

void meet_failed(struct meet *m, const struct meeting_cause *cause)
{
    pthread_mutex_lock(&m->lock);
    node_failed(&m->node, cause);
    pthread_mutex_unlock(&m->lock);
    ring(m->wake);
}

void meet_quiet(struct meet *m, bool quiet, int64_t number, int64_t call)
{
    pthread_mutex_lock(&m->lock);
    node_quiet(&m->node, quiet, number, call);
    pthread_mutex_unlock(&m->lock);
    ring(m->wake);
}

void meet_report_steps(struct meet *m, const struct steps *steps)
{
    pthread_mutex_lock(&m->lock);
    node_report_steps(&m->node, steps);
    pthread_mutex_unlock(&m->lock);
}

void meet_leave(struct meet *m, int signal)
{
    pthread_mutex_lock(&m->lock);
    node_leave(&m->node, signal, meet_now(m));
    pthread_mutex_unlock(&m->lock);
    ring(m->wake);
}

void meet_offer_port(struct meet *m, int port)
{
    pthread_mutex_lock(&m->lock);
    m->node.config.port = port;
    pthread_mutex_unlock(&m->lock);
}

bool meet_steps(struct meet *m, struct steps *ret)
{
    pthread_mutex_lock(&m->lock);
    const bool here = m->leads;
    if (here)
        *ret = m->leader.steps;
    pthread_mutex_unlock(&m->lock);
    return here;
}

void meet_end(struct meet *m, int64_t grace_ms)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    const int64_t limit_ms = clock_mono_ms() + END_MS + (m->leads ? grace_ms : 0);
    const struct timespec ts = {.tv_sec = limit_ms / 1000, .tv_nsec = limit_ms % 1000 * 1000000L};
    m->stop = true;
    m->grace_ms = meet_now(m) + grace_ms;
    node_ranks_ended(&m->node, false);
    node_leave(&m->node, 0, meet_now(m));
    ring(m->wake);
    while (!m->thread_ended && pthread_cond_timedwait(&m->ended, &m->lock, &ts) == 0)
        ;
    pthread_mutex_unlock(&m->lock);
    unref(m);
}
