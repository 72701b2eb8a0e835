/* watch.c - a rank's connection to the watch: register, read reports, send its own (watch.h). */
#include "collectives/watch.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/random.h"
#include "rendezvous/net.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    SLICE_MS = 100,
    RETRY_MS = 50,
    REASON_MS = 300,
    PARTING_MS = 500,
    ANSWER_MS =
        5000, /* the watch answers within 0.2 s of a core, unless its process is stopped or its host lost */
    READ_BYTES = 4096,
};

/* Send without waiting. Messages to the watch are few and small and it always reads, so a message that does not
 * fit into the socket's buffer means that the watch is lost; reading the connection then shows it. */
static void say(struct watch *w, const struct watch_head *head, const void *body)
{
    char out[WATCH_SAID_BYTES];

    memcpy(out, head, sizeof(*head));
    if (head->len)
        memcpy(out + sizeof(*head), body, head->len);
    if (w->fd >= 0)
        (void)send(w->fd, out, sizeof(*head) + head->len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void watch_report(struct watch *w)
{
    if (w->reported >= w->seq)
        return;
    w->reported = w->seq;
    say(w, &(struct watch_head){.type = WATCH_REPORT, .seq = w->seq}, NULL);
}

static void set_failed(struct watch *w, uint64_t from, enum err_kind kind, const char *msg)
{
    if (w->failed.kind != ERR_NONE)
        return;
    err_set(&w->failed, kind, "%s", msg[0] ? msg : "a rank failed without a message");
    w->failed_from = from;
}

static size_t go_bytes(const struct watch *w)
{
    return sizeof(struct watch_go) + (size_t)w->world * sizeof(*w->members);
}

static void take_members(struct watch *w, const char *body)
{
    uint8_t master[16];

    memcpy(w->token, body, sizeof(w->token));
    memcpy(w->members, body + sizeof(struct watch_go), (size_t)w->world * sizeof(*w->members));
    /* A rank that connected to the watch by a loopback address runs on the watch's host: use that host's
     * address. */
    if (net_peer(w->fd, master))
        for (int r = 0; r < w->world; r++)
            if (net_is_loopback(w->members[r].addr))
                memcpy(w->members[r].addr, master, sizeof(master));
    w->met = true;
}

/* Check the watch's proof, and send this rank's. */
static void take_challenge(struct watch *w, const char *body)
{
    const struct watch_head out = {.type = WATCH_PROOF, .len = JOBKEY_PROOF_BYTES};
    struct watch_challenge c;
    uint8_t proof[JOBKEY_PROOF_BYTES];

    memcpy(&c, body, sizeof(c));
    if (!pass_holds(w->pass, PASS_WATCH, &w->first, sizeof(w->first), c.nonce, c.proof)) {
        set_failed(w, 0, ERR_TRANSIENT, "the server there does not have the key of this job");
        return;
    }
    w->proved = true;
    pass_prove(w->pass, PASS_RANK, &w->first, sizeof(w->first), c.nonce, proof);
    say(w, &out, proof);
}

static bool hear(struct watch *w, const struct watch_head *head, const char *body)
{
    char text[ERR_MSG_BYTES];

    if (!w->proved && head->type != WATCH_CHALLENGE && head->type != WATCH_REFUSED)
        return false;
    snprintf(text, sizeof(text), "%.*s", head->type == WATCH_GO ? 0 : (int)head->len, body);
    switch ((enum watch_type)head->type) {
    case WATCH_REFUSED:
        set_failed(w, 0,
                   head->kind == ERR_TRANSIENT || head->kind == ERR_CONFLICT ? (enum err_kind)head->kind
                                                                             : ERR_INVALID,
                   text);
        return true;
    case WATCH_GO:
        if (head->len != go_bytes(w) || w->met)
            return false;
        take_members(w, body);
        return true;
    case WATCH_ANSWER:
        snprintf(w->answer, sizeof(w->answer), "%s", text);
        w->answered = true;
        return true;
    case WATCH_LEAVE:
        if (head->rank >= (uint32_t)w->world)
            return false;
        if (head->seq < w->left_after) {
            w->left_after = head->seq;
            w->left_rank = (int)head->rank;
        }
        w->left[head->rank] = true;
        w->orphaned = w->orphaned || head->rank == 0;
        return true;
    case WATCH_LOST:
        snprintf(text, sizeof(text), "rank %u went away", head->rank);
        set_failed(w, 0, ERR_PEER, text);
        return true;
    case WATCH_FAIL:
        if (head->kind == ERR_INVALID || head->kind == ERR_TIMEOUT) {
            set_failed(w, head->seq, (enum err_kind)head->kind, text);
        } else {
            char why[ERR_MSG_BYTES];
            snprintf(why, sizeof(why), "rank %u failed: %.200s", head->rank, text);
            set_failed(w, head->seq, ERR_PEER, why);
        }
        return true;
    case WATCH_QUERY:
        watch_report(w);
        return true;
    case WATCH_AWAITED:
        w->awaited = true;
        w->restarts = head->seq;
        return true;
    case WATCH_END:
        w->ended = true;
        w->exit_code = (int)head->kind;
        return true;
    case WATCH_CHALLENGE:
        if (w->proved || head->len != sizeof(struct watch_challenge))
            return false;
        take_challenge(w, body);
        return true;
    case WATCH_REGISTER:
    case WATCH_AWAIT:
    case WATCH_REPORT:
    case WATCH_PROOF:
        break;
    }
    return false;
}

/* Act on all whole messages in w->in. False when they are not from a watch. */
static bool hear_all(struct watch *w)
{
    struct watch_head head;
    const size_t most = go_bytes(w) + WATCH_SAID_BYTES;

    while (w->in.len >= sizeof(head)) {
        memcpy(&head, w->in.data, sizeof(head));
        if (head.len > most)
            return false;
        if (w->in.len < sizeof(head) + head.len)
            return true;
        if (!hear(w, &head, w->in.data + sizeof(head)))
            return false;
        buf_consume(&w->in, sizeof(head) + head.len);
    }
    return true;
}

/* Read what has arrived. The end of the connection means that rank 0 is lost, unless it has left. */
static void read_all(struct watch *w)
{
    char bytes[READ_BYTES];
    struct err ignored;

    while (w->fd >= 0) {
        ssize_t n = recv(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0 && buf_append(&w->in, bytes, (size_t)n, &ignored) == 0 && hear_all(w))
            continue;
        if (!w->orphaned)
            set_failed(w, 0, ERR_PEER,
                       n > 0 ? "rank 0 runs another version of this program" : "rank 0 went away");
        close(w->fd);
        w->fd = -1;
    }
}

void watch_enter(struct watch *w, bool message)
{
    w->in_message = message;
    w->seq += message ? 0 : 1;
}

/* A message (send, recv) is ordered after call seq and before the next. */
static bool has_failed(const struct watch *w)
{
    return w->failed.kind != ERR_NONE && w->failed_from <= w->seq + w->in_message;
}

int watch_look(struct watch *w, const char *what, struct err *err)
{
    read_all(w);
    if (has_failed(w)) {
        *err = w->failed;
        return w->failed.kind == ERR_PEER ? err_wrap(err, "%s", what) : -1;
    }
    if (w->left_after < w->seq)
        return err_set(err, ERR_PEER, "%s: rank %d went away", what, w->left_rank);
    return 0;
}

int watch_timed_out(struct watch *w, const char *what, struct err *err)
{
    const int64_t end_ms = clock_mono_ms() + ANSWER_MS;

    watch_report(w);
    w->answered = false;
    say(w, &(struct watch_head){.type = WATCH_QUERY, .seq = w->seq}, NULL);
    for (int64_t left; !w->answered && w->fd >= 0 && (left = end_ms - clock_mono_ms()) > 0;) {
        net_wait(w->fd, POLLIN, (int)left);
        read_all(w);
        if (has_failed(w)) {
            *err = w->failed;
            return -1;
        }
    }
    if (!w->answered)
        return err_set(err, ERR_TIMEOUT,
                       w->orphaned
                           ? "%s: deadline passed; the missing ranks are not known, because rank 0 has left"
                           : "%s: deadline passed while waiting for rank 0, which does not answer",
                       what);
    if (w->answer[0] == '\0')
        return err_set(err, ERR_TIMEOUT, "%s: deadline passed although every rank takes part", what);
    return err_set(err, ERR_TIMEOUT, "%s: deadline passed while waiting for rank %s", what, w->answer);
}

void watch_lost(struct watch *w, const char *what, struct err *err)
{
    const int64_t end_ms = clock_mono_ms() + REASON_MS;

    for (int64_t left; (left = end_ms - clock_mono_ms()) > 0; net_wait(w->fd, POLLIN, (int)left)) {
        struct err why = {0};
        if (watch_look(w, what, &why) < 0) {
            *err = why;
            return;
        }
        if (w->fd < 0)
            return;
    }
}

void watch_fail(struct watch *w, const struct err *why)
{
    const struct watch_head head = {.type = WATCH_FAIL,
                                    .seq = w->seq + w->in_message,
                                    .kind = why->kind,
                                    .len = (uint32_t)strnlen(why->msg, WATCH_TEXT_BYTES - 1)};

    if (w->failed.kind == ERR_NONE)
        say(w, &head, why->msg);
}

enum tried { JOINED, AGAIN, FAILED };

/* Before all ranks have registered: whether *err allows another try. It does if the connection ended, the
 * watch belongs to a round that has begun, or the server has not proved that it has the key. */
static enum tried again_or_failed(const struct watch *w, const struct err *err)
{
    return !w->proved || err->kind == ERR_PEER || err->kind == ERR_TRANSIENT ? AGAIN : FAILED;
}

/* Sleep before the next try. False: the deadline has passed. */
static bool try_again(int64_t deadline_ms)
{
    return clock_mono_ms() < deadline_ms && net_wait(-1, 0, RETRY_MS) <= 0;
}

static enum tried wait_for_all(struct watch *w, int64_t deadline_ms, struct err *err)
{
    while (!w->met) {
        const int64_t left = deadline_ms - clock_mono_ms();
        read_all(w);
        if (w->met)
            break;
        if (w->failed.kind != ERR_NONE) {
            *err = w->failed;
            return again_or_failed(w, err);
        }
        if (left <= 0) {
            watch_timed_out(w, "open", err);
            return again_or_failed(w, err);
        }
        net_wait(w->fd, POLLIN, left < SLICE_MS ? (int)left : SLICE_MS);
    }
    return JOINED;
}

/* Connect and send the first message. -1: no connection, *err says why. */
static int enter(struct watch *w, struct resolver *at, enum watch_type type, int rank, int world,
                 const struct pass *pass, const struct rank_member *me, int64_t deadline_ms, struct err *err)
{
    struct watch_register *r = &w->first.body;

    *w = (struct watch){
        .world = world, .left_after = UINT64_MAX, .pass = pass, .proved = !pass->key.has, .fd = -1};
    w->first.head =
        (struct watch_head){.type = type, .rank = (uint32_t)rank, .len = sizeof(struct watch_register)};
    *r = (struct watch_register){.magic = WATCH_MAGIC,
                                 .version = WATCH_VERSION,
                                 .world = (uint32_t)world,
                                 .member = *me,
                                 .has_key = pass->key.has};
    memcpy(r->run_id, pass->run_id, sizeof(r->run_id));
    if (pass->key.has)
        random_fill(r->nonce, sizeof(r->nonce));
    w->in = (struct buf)BUF_INIT(go_bytes(w) + 2 * WATCH_SAID_BYTES + READ_BYTES);
    w->members = memory_must(calloc((size_t)world + 1, sizeof(*w->members)));
    w->left = memory_must(calloc((size_t)world + 1, sizeof(*w->left)));
    w->fd = resolver_dial(at, deadline_ms);
    if (w->fd < 0) {
        bool unresolved;
        const char *why = resolver_why(at, &unresolved);
        return err_set(err, ERR_TRANSIENT, unresolved ? "cannot resolve it: %s" : "cannot connect: %s", why);
    }
    net_tune(w->fd, NET_LOST_MS, true);
    say(w, &w->first.head, r);
    return 0;
}

int watch_join(struct watch *w, struct resolver *at, int rank, int world, const struct pass *pass,
               const struct rank_member *me, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        enum tried rc = AGAIN;
        if (enter(w, at, WATCH_REGISTER, rank, world, pass, me, deadline_ms, err) == 0)
            rc = wait_for_all(w, deadline_ms, err);
        if (rc == JOINED)
            return 0;
        watch_close(w, false);
        if (rc == FAILED || !try_again(deadline_ms))
            return rc == FAILED ? -1 : 1;
    }
}

/* Make one try; *err says why it failed. */
static enum tried await_end(struct watch *w, int restart_count, int64_t deadline_ms, struct err *err)
{
    for (; !w->ended && w->failed.kind == ERR_NONE && (w->awaited || clock_mono_ms() < deadline_ms);
         read_all(w))
        net_wait(w->fd, POLLIN, SLICE_MS);
    /* Each pod's launcher counts its own restarts, so another count may or may not mean an earlier round. */
    const bool lost =
        w->awaited && (w->restarts == (uint64_t)restart_count || clock_mono_ms() >= deadline_ms);
    set_failed(w, 0, ERR_PEER, "it does not answer");
    *err = w->failed;
    return w->ended ? JOINED : lost ? FAILED : again_or_failed(w, &w->failed);
}

int watch_await_end(struct resolver *at, const struct pass *pass, int restart_count, int64_t deadline_ms,
                    int *exit_code, struct err *err)
{
    for (;;) {
        struct watch w;
        enum tried rc = AGAIN;
        if (enter(&w, at, WATCH_AWAIT, 0, 0, pass, &(struct rank_member){0}, deadline_ms, err) == 0)
            rc = await_end(&w, restart_count, deadline_ms, err);
        *exit_code = w.exit_code;
        watch_close(&w, false);
        if (rc == JOINED)
            return 0;
        if (rc == FAILED || !try_again(deadline_ms))
            return rc == FAILED ? -1 : 1;
    }
}

/* Closing a socket with unread bytes resets the connection, which may discard our last message. So read until the
 * watch has received it and closes its end. */
static void hang_up(struct watch *w)
{
    const int64_t end_ms = clock_mono_ms() + PARTING_MS;

    shutdown(w->fd, SHUT_WR);
    for (int64_t left; w->fd >= 0 && (left = end_ms - clock_mono_ms()) > 0; read_all(w))
        net_wait(w->fd, POLLIN, (int)left);
}

void watch_close(struct watch *w, bool well)
{
    if (well)
        say(w, &(struct watch_head){.type = WATCH_LEAVE, .seq = w->seq}, NULL);
    if (w->fd >= 0)
        hang_up(w);
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    free(w->members);
    free(w->left);
    w->members = NULL;
    w->left = NULL;
    buf_release(&w->in);
}
