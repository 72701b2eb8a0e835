/* member_speak.c - the member's thread that hosts or finds the store and publishes this node's state. */
#include "common/clock.h"
#include "rendezvous/leader.h"
#include "rendezvous/member_connection.h"
#include "rendezvous/stranger.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { WAIT_MS = 1000, STRANGER_MS = 500, STRANGER_AGAIN_MS = 10000 };

/* Start the leader and its store here, if configured and possible. */
static int try_host(struct connection *l, struct leader **ret, struct err *err)
{
    struct member *m = l->m;
    const struct member_config *c = &m->config;

    if (c->hosts == MEMBER_HOSTS_NOT ||
        (c->hosts == MEMBER_HOSTS_AUTO && !member_host_is_here(l->at, clock_mono_ms() + WAIT_MS)))
        return 0;
    *ret = leader_start(c->port, c->run_id, &c->quorum, err);
    if (!*ret)
        return c->hosts == MEMBER_HOSTS ? -1 : 0;
    pthread_mutex_lock(&m->lock);
    m->view.leaders = true;
    m->leader = *ret;
    m->say.leaders = 1;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* What serves at the store's address, and when to ask again. */
struct finding {
    enum stranger who;
    int64_t again_ms;
    char text[STRANGER_BYTES];
};

/* After a failed try to reach the store: tell in *err what serves at its address. A store that hangs is silent as well, so of
 * silence the error itself stays. */
static void name_stranger(struct connection *l, struct finding *f, struct err *err)
{
    const bool other_run = err->kind == ERR_INVALID, crowded = err->kind == ERR_TRANSIENT;
    char why[ERR_MSG_BYTES];

    if (other_run || crowded)
        return;
    if (clock_mono_ms() >= f->again_ms) {
        f->who = stranger_ask(l->at, STRANGER_MS, f->text);
        if (f->who != STRANGER_NOBODY)
            f->again_ms = clock_mono_ms() + STRANGER_AGAIN_MS;
    }
    snprintf(why, sizeof(why), "%s", err->msg);
    if (f->who == STRANGER_OTHER)
        err_set(err, err->kind, "no launcher's store: %s", f->text);
    else if (f->who == STRANGER_SILENT)
        err_set(err, err->kind, "%s (%s)", why, f->text);
}

/* Connect to the store, which may start later: its host's name may not resolve yet, or a previous run may still
 * serve at its address. */
static int arrive(struct connection *l, struct leader **leader)
{
    struct member *m = l->m;
    const int64_t limit_ms = clock_mono_ms() + m->config.quorum.join_ms;
    struct err err = {0};
    struct finding found = {0};
    char text[ERR_MSG_BYTES];

    while (!member_over(m)) {
        if (!*leader && try_host(l, leader, &err) < 0) {
            const bool taken =
                err.kind == ERR_CONFLICT && stranger_ask(l->at, STRANGER_MS, found.text) != STRANGER_NOBODY;
            snprintf(text, sizeof(text), "this node has to host the store: %.150s%s%s", err.msg,
                     taken ? ": " : "", taken ? found.text : "");
            member_lose(m, ERR_CONFLICT, err.code, text);
            return -1;
        }
        if (member_reach(l, &err) == 0)
            return 0;
        name_stranger(l, &found, &err);
        pthread_mutex_lock(&m->lock);
        m->view.err = err;
        pthread_mutex_unlock(&m->lock);
        if (clock_mono_ms() >= limit_ms) {
            snprintf(text, sizeof(text), "not reached within %.3g s: %.200s",
                     (double)m->config.quorum.join_ms / 1000, err.msg);
            member_lose(m, ERR_TIMEOUT, 0, text);
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
             m->config.addr    ? m->config.addr
             : m->view.leaders ? m->config.host
                               : addr);
    m->view.ticket = ticket;
    m->view.link = MEMBER_IN;
    member_tell_owner(m);
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* Write this node's state to the store; with `news` also wake the leader. */
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
    pthread_mutex_lock(&l->m->lock);
    l->m->said_tie = node->tie;
    pthread_mutex_unlock(&l->m->lock);
    return 0;
}

/* Wait until the state has changed or the next heartbeat is due; false: there is nothing more to publish. */
static bool next_word(struct member *m, int64_t beat_ms, struct meeting_node *node, bool *news)
{
    pthread_mutex_lock(&m->lock);
    while (!m->dirty && !m->stop && m->view.link != MEMBER_LOST && clock_mono_ms() < beat_ms)
        member_wait_until(m, beat_ms);
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
        if (!node.phase) { /* member_say has not been called yet */
            beat_ms = clock_mono_ms() + WAIT_MS;
            continue;
        }
        while (speak(l, &node, news, &err) < 0)
            if (member_mend(l, &err) < 0)
                return;
        beat_ms = clock_mono_ms() + interval_ms(l->m);
    }
}

/* Keep the store until the other nodes have read from it how the run ended. */
static void see_others_off(struct member *m, struct leader *leader)
{
    const struct timespec pause = {.tv_nsec = 5000000};

    pthread_mutex_lock(&m->lock);
    const int64_t limit_ms = clock_mono_ms() + m->grace_ms;
    pthread_mutex_unlock(&m->lock);
    while (!leader_over(leader) && clock_mono_ms() < limit_ms)
        nanosleep(&pause, NULL);
    pthread_mutex_lock(&m->lock);
    m->leader = NULL;
    pthread_mutex_unlock(&m->lock);
    leader_stop(leader);
}

void *member_speak_thread(void *arg)
{
    struct connection l = member_connection(arg);
    struct leader *leader = NULL;
    struct err err = {0};

    if (arrive(&l, &leader) == 0) {
        if (take_ticket(&l, &err) < 0)
            member_lose(l.m, ERR_PEER, 0, err.msg);
        else if (member_start_thread(member_listen_thread, l.m, &err) < 0)
            member_lose(l.m, err.kind, err.code, err.msg);
        else
            speak_on(&l);
    }
    member_disconnect(&l);
    if (leader)
        see_others_off(l.m, leader);
    pthread_mutex_lock(&l.m->lock);
    l.m->speaker_ended = true;
    pthread_cond_broadcast(&l.m->changed);
    pthread_mutex_unlock(&l.m->lock);
    member_unref(l.m);
    return NULL;
}
