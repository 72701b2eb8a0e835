/* store.c - the store's client: one request and its answer, before a deadline. */
#include "rendezvous/store.h"
#include "common/clock.h"
#include "common/memory.h"
#include "host/resolve.h"
#include "rendezvous/store_wire.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { RETRY_MS_MIN = 5, RETRY_MS_MAX = 200 };

static int judge(struct store *s, struct view body, const char *key, struct view *payload, struct err *err)
{
    *payload = (struct view){body.p + 1, body.len - 1};
    switch ((enum protocol_status)body.p[0]) {
    case STATUS_OK:
        return 0;
    case STATUS_TIMEOUT:
        return err_set(err, ERR_TIMEOUT, "store %s: deadline passed while waiting for key \"%s\"", s->where,
                       key);
    case STATUS_CONFLICT:
        return err_set(err, ERR_CONFLICT, "store %s: key \"%s\" has another value", s->where, key);
    case STATUS_FULL:
        return err_set(err, ERR_INVALID, "store %s: full, no room for key \"%s\"", s->where, key);
    case STATUS_BAD:
        return err_set(err, ERR_INVALID, "store %s: key \"%s\" is not a counter", s->where, key);
    case STATUS_REFUSED:
        return err_set(err, ERR_INVALID, "store %s: belongs to another run (the run ids differ)", s->where);
    case STATUS_CROWDED:
        return err_set(err, ERR_TRANSIENT, "store %s: too many clients", s->where);
    }
    return err_set(err, ERR_FATAL, "store %s: unknown answer %d", s->where, body.p[0]);
}

/* Send a request and read its answer; *payload points into s->in until the next request. The server ends a wait
 * at wait_ms. The client's deadline is 1 s later, so that the server's timeout answer still arrives in order. */
static int ask(struct store *s, const char *key, struct protocol_request *r, int64_t timeout_ms,
               struct view *payload, struct err *err)
{
    const int64_t slack_ms = r->wait_ms ? 1000 : 0, deadline_ms = clock_mono_ms() + timeout_ms + slack_ms;
    struct view body;

    if (s->broken)
        return err_set(err, ERR_PEER, "store %s: the connection has failed before", s->where);
    r->key = (struct view){key, strlen(key)};
    if (timeout_ms < 0 || r->key.len == 0 || r->key.len > STORE_KEY_BYTES ||
        r->value.len > STORE_VALUE_BYTES || r->expected.len > STORE_VALUE_BYTES)
        return err_set(
            err, ERR_INVALID,
            "store: key \"%.40s\": expected a key of 1..%d bytes, a value of at most %d and a time", key,
            STORE_KEY_BYTES, STORE_VALUE_BYTES);
    buf_clear(&s->in);
    if (protocol_put_request(&s->out, r, err) < 0 || store_send_out(s, deadline_ms, err) < 0 ||
        store_read_answer(s, &body, deadline_ms, err) < 0)
        return -1;
    return judge(s, body, key, payload, err);
}

static uint32_t wait_of(int64_t timeout_ms)
{
    return timeout_ms < 1 ? 1 : timeout_ms > INT_MAX ? INT_MAX : (uint32_t)timeout_ms;
}

bool store_usable(const struct store *s)
{
    return !s->broken;
}

int store_set(struct store *s, const char *key, const void *value, size_t len, int64_t timeout_ms,
              struct err *err)
{
    struct protocol_request r = {.op = OP_SET, .value = {value, len}};
    struct view payload;

    return ask(s, key, &r, timeout_ms, &payload, err);
}

int store_get(struct store *s, const char *key, struct buf *out, int64_t timeout_ms, struct err *err)
{
    struct protocol_request r = {.op = OP_GET, .wait_ms = wait_of(timeout_ms)};
    struct view payload;

    if (ask(s, key, &r, timeout_ms, &payload, err) < 0)
        return -1;
    return buf_append(out, payload.p, payload.len, err);
}

int store_add(struct store *s, const char *key, int64_t delta, int64_t *ret, int64_t timeout_ms,
              struct err *err)
{
    struct protocol_request r = {.op = OP_ADD, .number = delta};
    struct view payload;

    if (ask(s, key, &r, timeout_ms, &payload, err) < 0)
        return -1;
    return protocol_number(payload, ret)
               ? 0
               : err_set(err, ERR_FATAL, "store %s: the answer is not a number", s->where);
}

int store_compare_set(struct store *s, const char *key, const void *expected, size_t expected_len,
                      const void *value, size_t len, struct buf *found, int64_t timeout_ms, struct err *err)
{
    struct protocol_request r = {
        .op = OP_COMPARE_SET, .expected = {expected, expected_len}, .value = {value, len}};
    struct view payload = {NULL, 0};
    struct err why = {0}, full;

    if (ask(s, key, &r, timeout_ms, &payload, &why) == 0)
        return 0;
    if (why.kind == ERR_CONFLICT && found && buf_append(found, payload.p, payload.len, &full) < 0)
        why = full;
    *err = why;
    return -1;
}

int store_wait_count(struct store *s, const char *key, int64_t count, int64_t timeout_ms, struct err *err)
{
    struct protocol_request r = {.op = OP_WAIT_COUNT, .number = count, .wait_ms = wait_of(timeout_ms)};
    struct view payload;

    return ask(s, key, &r, timeout_ms, &payload, err);
}

static int greet(struct store *s, const char *run_id, int64_t deadline_ms, struct err *err)
{
    char hello[PROTOCOL_HELLO_BYTES];
    struct view body, payload;

    protocol_hello(run_id, hello);
    if (buf_append(&s->out, hello, sizeof(hello), err) < 0 || store_send_out(s, deadline_ms, err) < 0 ||
        store_read_answer(s, &body, deadline_ms, err) < 0)
        return -1;
    return judge(s, body, "", &payload, err);
}

static void sleep_ms(int ms)
{
    const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&ts, NULL);
}

static void tune(int fd)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

struct store *store_connect(const char *host, int port, const char *run_id, int64_t timeout_ms,
                            struct err *err)
{
    cleanup_resolver struct resolver *at = resolver_new(host, port);

    return store_connect_by(at, host, port, run_id, timeout_ms, err);
}

/* A name that does not resolve yet is retried like a server that does not listen yet. */
struct store *store_connect_by(struct resolver *at, const char *host, int port, const char *run_id,
                               int64_t timeout_ms, struct err *err)
{
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    bool unresolved;
    int fd;

    if (timeout_ms < 0 || strlen(run_id) > STORE_RUN_ID_BYTES) {
        err_set(err, ERR_INVALID, "store %.60s:%d: expected a time, and a run id of at most %d bytes", host,
                port, STORE_RUN_ID_BYTES);
        return NULL;
    }
    for (int wait_ms = RETRY_MS_MIN; (fd = resolver_dial(at, deadline_ms)) < 0;) {
        int left = store_left_ms(deadline_ms);
        if (left == 0) {
            err_set(err, ERR_TIMEOUT, "store %.60s:%d: deadline passed while trying to connect: %s", host,
                    port, resolver_why(at, &unresolved));
            err->code = unresolved ? EAI_NONAME : 0;
            return NULL;
        }
        sleep_ms(wait_ms < left ? wait_ms : left);
        wait_ms = wait_ms * 2 < RETRY_MS_MAX ? wait_ms * 2 : RETRY_MS_MAX;
    }
    struct store *s = memory_must(calloc(1, sizeof(*s)));
    tune(fd);
    s->fd = fd;
    s->in = s->out = (struct buf)BUF_INIT(PROTOCOL_BODY_BYTES + 16 * 1024 + 8);
    snprintf(s->where, sizeof(s->where), "%.100s:%d", host, port);
    if (greet(s, run_id, deadline_ms, err) == 0)
        return s;
    store_close(s);
    return NULL;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    close(s->fd);
    buf_release(&s->in);
    buf_release(&s->out);
    free(s);
}
