/* member_connection.c - connect to the store, and reconnect when the connection is lost. */
#include "rendezvous/member_connection.h"
#include "common/clock.h"
#include "host/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* TRY_MS bounds one try to connect; a stop is noticed after it. GONE_MS is the time to replace a connection that
 * broke (rather than fell silent), since after QUORUM_CUT_MS the leader counts the node as lost. */
enum { TRY_MS = 1000, REST_MS = 100, GONE_MS = QUORUM_CUT_MS };

void member_tell_owner(struct member *m)
{
    const uint64_t one = 1;

    if (write(m->fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        return; /* the counter is at its maximum: readable already */
}

bool member_ended(const struct member *m)
{
    return m->view.state.stage == STAGE_ENDED;
}

void member_lose(struct member *m, enum err_kind kind, int code, const char *why)
{
    pthread_mutex_lock(&m->lock);
    if (m->view.link != MEMBER_LOST && !member_ended(m)) {
        m->view.link = MEMBER_LOST;
        err_set(&m->view.err, kind, "rendezvous at %.100s:%d: %s", m->config.host, m->config.port, why);
        m->view.err.code = code;
        member_tell_owner(m);
    }
    pthread_mutex_unlock(&m->lock);
}

bool member_over(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    const bool is = m->stop || m->view.link == MEMBER_LOST || member_ended(m);
    pthread_mutex_unlock(&m->lock);
    return is;
}

int64_t member_silence_ms(const struct member *m)
{
    return m->config.quorum.keep_alive_ms * m->config.quorum.keep_alive_attempts;
}

/* ERR_INVALID when another leader than before is at the address: it does not have the run's state. */
static int check_leader(struct connection *l, struct err *err)
{
    cleanup_buf struct buf id = BUF_INIT(sizeof(l->m->leader_id) - 1);
    struct member *m = l->m;

    if (store_get(l->store, "leader", &id, TRY_MS, err) < 0)
        return -1;
    pthread_mutex_lock(&m->lock);
    if (!m->leader_id[0])
        snprintf(m->leader_id, sizeof(m->leader_id), "%s", buf_str(&id));
    const bool same = strcmp(m->leader_id, buf_str(&id)) == 0;
    pthread_mutex_unlock(&m->lock);
    return same ? 0 : err_set(err, ERR_INVALID, "another run has begun there");
}

void member_rest(void)
{
    const struct timespec ts = {.tv_nsec = REST_MS * 1000000L};

    nanosleep(&ts, NULL);
}

struct connection member_connection(struct member *m)
{
    return (struct connection){
        .m = m, .at = resolver_new(m->config.host, m->config.port), .ok_ms = clock_mono_ms()};
}

void member_end_aside(struct connection *l)
{
    while (l->n_aside)
        store_close(l->aside[--l->n_aside]);
}

void member_disconnect(struct connection *l)
{
    member_end_aside(l);
    store_close(TAKE(l->store));
    resolver_free(TAKE(l->at));
}

/* Use the leader's numeric address from now on: it does not change, and a reconnect has no time for a name
 * lookup. */
static void keep_address(struct connection *l)
{
    char addr[MEETING_NAME_BYTES];
    struct err ignored;

    if (store_peer_address(l->store, addr, sizeof(addr), &ignored) < 0)
        return;
    resolver_free(l->at);
    l->at = resolver_new(addr, l->m->config.port);
}

static int reach_within(struct connection *l, int64_t timeout_ms, struct err *err)
{
    const struct member_config *c = &l->m->config;

    l->store = store_connect_by(l->at, c->host, c->port, c->run_id, timeout_ms, err);
    if (l->store && check_leader(l, err) == 0) {
        l->ok_ms = clock_mono_ms();
        keep_address(l);
        return 0;
    }
    store_close(TAKE(l->store));
    return -1;
}

int member_reach(struct connection *l, struct err *err)
{
    return reach_within(l, TRY_MS, err);
}

int member_mend(struct connection *l, const struct err *why)
{
    const int64_t limit_ms =
        why->kind == ERR_PEER ? clock_mono_ms() + GONE_MS : l->ok_ms + member_silence_ms(l->m);
    struct err err = *why;
    char text[ERR_MSG_BYTES];

    if (why->kind == ERR_TIMEOUT && l->tied && l->n_aside < CONNECTION_ASIDE_MAX)
        l->aside[l->n_aside++] = TAKE(l->store);
    store_close(TAKE(l->store));
    l->tied = false;
    while (!member_over(l->m)) {
        const int64_t left_ms = limit_ms - clock_mono_ms();
        if (reach_within(l, left_ms < 0 ? 0 : left_ms < TRY_MS ? left_ms : TRY_MS, &err) == 0)
            return 0;
        if (clock_mono_ms() >= limit_ms || err.kind == ERR_INVALID)
            break;
        member_rest();
    }
    snprintf(text, sizeof(text), "the node that hosts it was lost: %.150s", err.msg);
    member_lose(l->m, ERR_PEER, 0, text);
    return -1;
}
