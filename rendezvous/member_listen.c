/* member_listen.c - the member's thread that watches the meeting's state in the store. */
#include "common/clock.h"
#include "common/memory.h"
#include "rendezvous/member_connection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 1000 };

/* Give this connection a will that makes the store record its end, so that the leader notices at once when this
 * process exits. `tie` in this node's state says which connection counts. When the store has no room for the
 * will, a loss is noticed by missing heartbeats only. */
static int tie(struct connection *l, int64_t number, struct err *err)
{
    struct member *m = l->m;
    const int64_t timeout_ms = member_silence_ms(m);
    struct err why = {0};
    char key[40], text[24];
    int rc;

    l->tied = true;
    snprintf(key, sizeof(key), "cut/%" PRId64, m->view.ticket);
    const int len = snprintf(text, sizeof(text), "%" PRId64, number);
    rc = number == 1 ? store_set(l->store, key, "0", 1, timeout_ms, &why) : 0; /* so that get need not wait */
    if (rc < 0 || store_will_set(l->store, key, text, (size_t)len, timeout_ms, &why) < 0 ||
        store_will_add(l->store, "cuts", 1, timeout_ms, &why) < 0 ||
        store_will_add(l->store, "posts", 1, timeout_ms, &why) < 0) {
        *err = why;
        return store_usable(l->store) ? 0 : -1;
    }
    pthread_mutex_lock(&m->lock);
    m->say.tie = number;
    m->dirty = m->dirty || m->say.phase;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return 0;
}

/* Close the connections before this one, once this node's state with its tie has been published. */
static void forget_older(struct connection *l, int64_t tie)
{
    pthread_mutex_lock(&l->m->lock);
    const bool told = l->m->said_tie >= tie;
    pthread_mutex_unlock(&l->m->lock);
    if (told)
        member_end_aside(l);
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

void *member_listen_thread(void *arg)
{
    struct connection l = member_connection(arg);
    struct meeting_state *state = memory_must(calloc(1, sizeof(*state)));
    int64_t version = 0;
    struct err err = {.kind = ERR_PEER};

    bool there = member_reach(&l, &err) == 0 || member_mend(&l, &err) == 0;
    for (int64_t ties = 0; there && !member_over(l.m); there = member_mend(&l, &err) == 0) {
        if (tie(&l, ++ties, &err) < 0)
            continue;
        while (!member_over(l.m) && hear(&l, &version, state, &err) == 0)
            forget_older(&l, ties);
    }
    free(state);
    member_disconnect(&l);
    member_unref(l.m);
    return NULL;
}
