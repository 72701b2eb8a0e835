/* member.c - one thread that speaks (and connects, and hosts), one that listens. */
#include "common/clock.h"
#include "common/thread.h"
#include "rendezvous/chair.h"
#include "rendezvous/member_connection.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

enum { WAIT_MS = 1000, END_MS = 2000 };

static void unref(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    const bool last = --m->refs == 0;
    pthread_mutex_unlock(&m->lock);
    if (!last)
        return;
    close(m->fd);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    free((char *)(uintptr_t)m->config.host);
    free((char *)(uintptr_t)m->config.run_id);
    free((char *)(uintptr_t)m->config.addr);
    free((char *)(uintptr_t)m->config.quorum.master_addr);
    free(m);
}

/* Become the host where that is wanted and possible. */
static int try_host(struct connection *l, struct chair **ret, struct err *err)
{
    struct member *m = l->m;
    const struct member_config *c = &m->config;

    if (c->hosts == MEMBER_HOSTS_NOT ||
        (c->hosts == MEMBER_HOSTS_AUTO && !member_host_is_here(l->at, clock_mono_ms() + WAIT_MS)))
        return 0;
    *ret = chair_start(c->port, c->run_id, &c->quorum, err);
    if (!*ret)
        return c->hosts == MEMBER_HOSTS ? -1 : 0;
    pthread_mutex_lock(&m->lock);
    m->view.chairs = true;
    m->say.chairs = 1;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* The store may come later than we: its node's name may not resolve yet, and another run may be in its place still. */
static int arrive(struct connection *l, struct chair **chair)
{
    struct member *m = l->m;
    const int64_t limit_ms = clock_mono_ms() + m->config.quorum.join_ms;
    struct err err = {0};
    char text[ERR_MSG_BYTES];

    while (!member_over(m)) {
        if (!*chair && try_host(l, chair, &err) < 0) {
            snprintf(text, sizeof(text), "this node has to host the store: %.150s", err.msg);
            member_lose(m, ERR_CONFLICT, text);
            return -1;
        }
        if (member_reach(l, &err) == 0)
            return 0;
        if (clock_mono_ms() >= limit_ms) {
            snprintf(text, sizeof(text), "not reached within %.3g s: %.150s",
                     (double)m->config.quorum.join_ms / 1000, err.msg);
            member_lose(m, ERR_TIMEOUT, text);
            return -1;
        }
        member_rest();
    }
    return -1;
}

static int take_ticket(struct connection *l, struct err *err)
{
    struct member *m = l->m;
    char addr[MEETING_NAME_BYTES] = "";
    int64_t ticket;

    if (store_local_address(l->store, addr, sizeof(addr), err) < 0 ||
        store_add(l->store, "tickets", 1, &ticket, member_silence_ms(m), err) < 0)
        return -1;
    pthread_mutex_lock(&m->lock);
    snprintf(m->say.addr, sizeof(m->say.addr), "%s",
             m->config.addr   ? m->config.addr
             : m->view.chairs ? m->config.host
                              : addr);
    m->view.ticket = ticket;
    m->view.link = MEMBER_IN;
    member_tell_owner(m);
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* Write our word; `news` wakes the chair. */
static int speak(struct connection *l, const struct meeting_node *node, bool news, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(STORE_VALUE_BYTES);
    char key[40];
    int64_t ignored;

    snprintf(key, sizeof(key), "node/%" PRId64, l->m->view.ticket);
    if (meeting_put_node(node, &text, err) < 0 ||
        store_set(l->store, key, text.data, text.len, member_silence_ms(l->m), err) < 0)
        return -1;
    if (news && store_add(l->store, "posts", 1, &ignored, member_silence_ms(l->m), err) < 0)
        return -1;
    l->ok_ms = clock_mono_ms();
    return 0;
}

static void wait_until(struct member *m, int64_t mono_ms)
{
    const struct timespec ts = {.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000L};

    pthread_cond_timedwait(&m->changed, &m->lock, &ts);
}

/* Sleep until there is something to say or the next heartbeat is due; false: nothing will come any more. */
static bool next_word(struct member *m, int64_t beat_ms, struct meeting_node *node, bool *news)
{
    pthread_mutex_lock(&m->lock);
    while (!m->dirty && !m->stop && m->view.link != MEMBER_LOST && clock_mono_ms() < beat_ms)
        wait_until(m, beat_ms);
    const bool more = m->view.link != MEMBER_LOST && (m->dirty || !m->stop);
    *news = m->dirty;
    m->dirty = false;
    m->say.beat++;
    *node = m->say;
    pthread_mutex_unlock(&m->lock);
    return more;
}

static int64_t interval_ms(struct member *m)
{
    const int64_t own_ms = m->config.quorum.keep_alive_ms;

    pthread_mutex_lock(&m->lock);
    const int64_t theirs_ms = m->view.state.keep_alive_ms;
    pthread_mutex_unlock(&m->lock);
    return theirs_ms && theirs_ms < own_ms ? theirs_ms : own_ms;
}

static void speak_on(struct connection *l)
{
    struct meeting_node node;
    struct err err = {0};
    bool news;

    for (int64_t beat_ms = 0; next_word(l->m, beat_ms, &node, &news);) {
        if (!node.phase) { /* the owner has said nothing yet */
            beat_ms = clock_mono_ms() + WAIT_MS;
            continue;
        }
        while (speak(l, &node, news, &err) < 0)
            if (member_mend(l, &err) < 0)
                return;
        beat_ms = clock_mono_ms() + interval_ms(l->m);
    }
}

/* The others hear the end from our store: it stays until they have. */
static void see_others_off(struct member *m, struct chair *chair)
{
    const struct timespec pause = {.tv_nsec = 5000000};

    pthread_mutex_lock(&m->lock);
    const int64_t limit_ms = clock_mono_ms() + m->grace_ms;
    pthread_mutex_unlock(&m->lock);
    while (!chair_over(chair) && clock_mono_ms() < limit_ms)
        nanosleep(&pause, NULL);
    chair_stop(chair);
}

static int hear(struct connection *l, int64_t *version, struct meeting_state *state, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(STORE_VALUE_BYTES);
    struct err why = {0};
    struct member *m = l->m;

    if (store_wait_count(l->store, "version", *version + 1, WAIT_MS, &why) < 0) {
        if (why.kind == ERR_TIMEOUT && store_usable(l->store)) {
            l->ok_ms = clock_mono_ms();
            return 0;
        }
        *err = why;
        return -1;
    }
    if (store_get(l->store, "state", &text, member_silence_ms(m), err) < 0 ||
        meeting_get_state(text.data, text.len, state, err) < 0)
        return -1;
    l->ok_ms = clock_mono_ms();
    *version = state->version > *version ? state->version : *version + 1;
    pthread_mutex_lock(&m->lock);
    m->view.state = *state;
    if (member_ended(m)) {
        m->say.heard_end = 1;
        m->dirty = true;
        pthread_cond_broadcast(&m->changed);
    }
    member_tell_owner(m);
    pthread_mutex_unlock(&m->lock);
    return 0;
}

static void *listen_thread(void *arg)
{
    struct connection l = member_connection(arg);
    struct meeting_state *state = calloc(1, sizeof(*state));
    int64_t version = 0;
    struct err err = {.kind = ERR_PEER};

    if (!state)
        abort();
    if (member_reach(&l, &err) == 0 || member_mend(&l, &err) == 0)
        while (!member_over(l.m) && (hear(&l, &version, state, &err) == 0 || member_mend(&l, &err) == 0))
            ;
    free(state);
    member_disconnect(&l);
    unref(l.m);
    return NULL;
}

static int start_thread(void *(*run)(void *), struct member *m, struct err *err)
{
    pthread_t thread;

    pthread_mutex_lock(&m->lock);
    m->refs++;
    pthread_mutex_unlock(&m->lock);
    int code = thread_start(&thread, run, m);
    if (code == 0) {
        pthread_detach(thread);
        return 0;
    }
    unref(m);
    return err_errno(err, ERR_FATAL, code, "rendezvous: cannot start a thread");
}

static void *speak_thread(void *arg)
{
    struct connection l = member_connection(arg);
    struct chair *chair = NULL;
    struct err err = {0};

    if (arrive(&l, &chair) == 0) {
        if (take_ticket(&l, &err) < 0 || start_thread(listen_thread, l.m, &err) < 0)
            member_lose(l.m, ERR_PEER, err.msg);
        else
            speak_on(&l);
    }
    member_disconnect(&l);
    if (chair)
        see_others_off(l.m, chair);
    pthread_mutex_lock(&l.m->lock);
    l.m->speaker_ended = true;
    pthread_cond_broadcast(&l.m->changed);
    pthread_mutex_unlock(&l.m->lock);
    unref(l.m);
    return NULL;
}

static char *copy(const char *text)
{
    char *out = text ? strdup(text) : NULL;

    if (text && !out)
        abort();
    return out;
}

struct member *member_start(const struct member_config *c, struct err *err)
{
    struct member *m = calloc(1, sizeof(*m));
    pthread_condattr_t attr;

    if (!m)
        abort();
    m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->refs = 1;
    m->grace_ms = END_MS;
    m->config = *c;
    m->config.host = copy(c->host);
    m->config.run_id = copy(c->run_id);
    m->config.addr = copy(c->addr);
    m->config.quorum.master_addr = copy(c->quorum.master_addr);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (m->fd < 0)
        err_errno(err, ERR_FATAL, errno, "rendezvous: eventfd");
    else if (start_thread(speak_thread, m, err) == 0)
        return m;
    unref(m);
    return NULL;
}

int member_fd(const struct member *m)
{
    return m->fd;
}

void member_look(struct member *m, struct member_view *view)
{
    uint64_t ignored;

    pthread_mutex_lock(&m->lock);
    ssize_t n = read(m->fd, &ignored, sizeof(ignored)); /* none: the view is as it was */
    (void)n;
    *view = m->view;
    pthread_mutex_unlock(&m->lock);
}

void member_say(struct member *m, const struct meeting_node *node)
{
    pthread_mutex_lock(&m->lock);
    struct meeting_node said = m->say;
    m->say = *node;
    m->say.beat = said.beat;
    m->say.chairs = said.chairs;
    m->say.heard_end = said.heard_end;
    memcpy(m->say.addr, said.addr, sizeof(said.addr));
    m->dirty = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* A thread that is late is left behind; it frees what it holds when it comes back. */
void member_end(struct member *m, int64_t grace_ms)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    const int64_t limit_ms = clock_mono_ms() + END_MS + (m->view.chairs ? grace_ms : 0);
    m->stop = true;
    m->grace_ms = grace_ms;
    pthread_cond_broadcast(&m->changed);
    while (!m->speaker_ended && clock_mono_ms() < limit_ms)
        wait_until(m, limit_ms);
    pthread_mutex_unlock(&m->lock);
    unref(m);
}
