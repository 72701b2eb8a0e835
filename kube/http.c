/* http.c - the transport over libcurl: a pool that queues transfers, limits how many are in flight and reuses connections.
 * libcurl's callbacks only collect bytes; tasks of the loop call the handlers. */
#include "kube/http.h"

#include "common/buf.h"
#include "common/memory.h"
#include "kube/endpoint.h"
#include "kube/fairqueue.h"

#include <stdlib.h>
#include <string.h>

enum {
    CONNECTIONS_IDLE = HTTP_SLOTS + HTTP_RESERVED,
    COUNTS_MAX = 64,
    /* The API server closes connections that were idle for 90 s (apiserver: pkg/server/secure_serving.go). A request
     * sent at that moment would fail. */
    IDLE_MAX_S = 80,
    PENDING_MAX_BYTES = 64 << 10, /* of a stream, received and not delivered: beyond this, stop reading */
};

static const struct fairqueue_limits LIMITS = {.slots = HTTP_SLOTS,
                                               .reserved = HTTP_RESERVED,
                                               .share_max = HTTP_SLOTS,
                                               .slow_ms = HTTP_SLOW_MS,
                                               .slow_share_max = HTTP_SLOW_SHARE_MAX,
                                               .slow_max = HTTP_SLOW_MAX,
                                               .later_ms = HTTP_LATER_MS};

struct kube_transfer {
    struct http *pool;
    struct kube_transfer *next, **prev;
    struct fairqueue_item turn;
    uint64_t generation; /* of the configuration when it was sent */
    bool own_connection, at_once;
    int64_t launched_ms;
    char method[8];
    struct kube_http_handler handler;
    const struct kube_transport_gate *gate;
    CURL *easy;
    struct curl_slist *headers;
    struct kube_loop_transfer on_loop;
    struct kube_loop_task deliver;
    struct kube_loop_timer idle;
    struct buf body; /* received and not yet delivered */
    const char *content_type;
    struct err failure; /* why there is no complete answer; ERR_NONE: no failure so far */
    char shown[100];    /* the path without its query, for messages */
    char curl_error[CURL_ERROR_SIZE];
    int64_t idle_timeout_ms, last_byte_ms;
    bool running;
    bool in_chunks; /* a 2xx answer to a handler with chunk */
    bool paused;
    bool held; /* see transport.h */
    bool finished;
    bool over;   /* the answer is longer than its limit */
    bool no_tls; /* the failure is one of TLS, before anything was sent */
    bool again;  /* it was sent again */
    bool *gone;  /* NULL, or set to true when the handler frees the transfer */
    size_t body_max_bytes;
};

struct http {
    struct kube_loop *loop;
    struct kube_config *config;
    const char *user_agent;
    struct kube_transfer *transfers; /* all of them */
    struct fairqueue *turns;         /* ordinary transfers that wait for a slot */
    int64_t suspect_ms;              /* connections idle since before this are not reused */
    struct kube_loop_timer again;    /* when a slot may become free */
    struct http_count counts[COUNTS_MAX];
    size_t n_counts;
};

static void launch_waiting(void *ctx);

struct http *http_new(struct kube_loop *l, struct kube_config *config, const char *user_agent,
                      struct err *err)
{
    if (endpoint_check(config->server, err) < 0)
        return NULL;
    struct http *h = memory_must(calloc(1, sizeof(*h)));
    h->loop = l;
    h->config = config;
    h->user_agent = user_agent;
    h->turns = fairqueue_new(&LIMITS);
    h->again = (struct kube_loop_timer){.fire = launch_waiting, .ctx = h};
    h->suspect_ms = kube_loop_now_ms(l) - 1000 * IDLE_MAX_S;
    /* About 50 KiB each. Connections opened for many slow transfers are closed after them. */
    kube_loop_connections(l, CONNECTIONS_IDLE);
    return h;
}

static bool is_out(const struct kube_transfer *c)
{
    return c->at_once || c->turn.state == FAIRQUEUE_OUT || c->turn.state == FAIRQUEUE_SLOW;
}

static void transfer_free(struct kube_transfer *c)
{
    struct http *h = c->pool;

    kube_loop_timer_cancel(h->loop, &c->idle);
    kube_loop_task_cancel(h->loop, &c->deliver);
    if (c->gone)
        *c->gone = true;
    if (c->running)
        curl_multi_remove_handle(kube_loop_curl(h->loop), c->easy);
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    buf_release(&c->body);
    if (is_out(c))
        kube_loop_connections(h->loop, -1);
    if (!c->at_once)
        fairqueue_leave(h->turns, &c->turn);
    *c->prev = c->next;
    if (c->next)
        c->next->prev = c->prev;
    free(c);
}

void http_free(struct http *h)
{
    if (!h)
        return;
    while (h->transfers)
        transfer_free(h->transfers);
    fairqueue_free(h->turns);
    kube_loop_timer_cancel(h->loop, &h->again);
    kube_loop_connections(h->loop, -CONNECTIONS_IDLE);
    free(h);
}

static void count(const struct kube_transfer *c, int status)
{
    struct http *h = c->pool;
    size_t i = 0;

    while (i < h->n_counts && (h->counts[i].status != status || strcmp(h->counts[i].method, c->method) != 0))
        i++;
    if (i == COUNTS_MAX)
        return;
    if (i == h->n_counts) {
        h->n_counts++;
        h->counts[i].status = status;
        snprintf(h->counts[i].method, sizeof(h->counts[i].method), "%s", c->method);
    }
    h->counts[i].n++;
}

const struct http_count *http_counts(const struct http *h, size_t *ret_n)
{
    *ret_n = h->n_counts;
    return h->counts;
}

/* A request got no answer, so its connection may have died silently. Connections that were idle at that time
 * may be dead, too: each would cost another request its timeout, and the leader its lease. */
static void suspect(const struct kube_transfer *c)
{
    struct http *h = c->pool;

    if (!c->own_connection && c->running && c->launched_ms > h->suspect_ms)
        h->suspect_ms = c->launched_ms;
}

/* ---- sending */

/* Keep the first reason. */
static void fail(struct kube_transfer *c, enum err_kind kind, const char *why)
{
    if (c->failure.kind == ERR_NONE)
        err_set(&c->failure, kind, "%s %s: %s", c->method, c->shown, why);
}

static bool is_shut(struct kube_transfer *c)
{
    if (!c->gate || c->gate->is_open(c->gate->ctx))
        return false;
    fail(c, ERR_TRANSIENT, "not sent: this process does not hold the lease");
    return true;
}

static void end_transfer(struct kube_transfer *c)
{
    c->finished = true;
    kube_loop_timer_cancel(c->pool->loop, &c->idle);
    kube_loop_task_add(c->pool->loop, &c->deliver);
}

static void on_transfer_done(void *ctx, int curl_code)
{
    struct kube_transfer *c = ctx;

    if (curl_code != CURLE_OK && !c->over) {
        c->no_tls = c->failure.kind == ERR_NONE &&
                    (curl_code == CURLE_PEER_FAILED_VERIFICATION || curl_code == CURLE_SSL_CONNECT_ERROR ||
                     curl_code == CURLE_SSL_CACERT_BADFILE);
        fail(c, curl_code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_TRANSIENT,
             c->curl_error[0] ? c->curl_error : curl_easy_strerror((CURLcode)curl_code));
    }
    end_transfer(c);
}

static void on_idle(void *ctx)
{
    struct kube_transfer *c = ctx;
    char why[48];

    if (c->held) /* we do not read: the peer's silence is our doing */
        c->last_byte_ms = kube_loop_now_ms(c->pool->loop);
    int64_t due = c->last_byte_ms + c->idle_timeout_ms;
    if (kube_loop_now_ms(c->pool->loop) < due) {
        kube_loop_timer_set(c->pool->loop, &c->idle, due);
        return;
    }
    snprintf(why, sizeof(why), "no data for %lld ms", (long long)c->idle_timeout_ms);
    fail(c, ERR_TIMEOUT, why);
    end_transfer(c);
}

static int64_t idle_max_s(const struct http *h)
{
    int64_t s = (kube_loop_now_ms(h->loop) - h->suspect_ms) / 1000 - 1; /* libcurl counts whole seconds */

    s = s < IDLE_MAX_S ? s : IDLE_MAX_S;
    return s > 1 ? s : 1;
}

static void send_transfer(struct kube_transfer *c)
{
    struct err err;

    if (is_shut(c)) {
        end_transfer(c);
        return;
    }
    if (endpoint_sign(c->pool->config, c->content_type, c->easy, &c->headers, &err) < 0) {
        fail(c, err.kind, err.msg);
        end_transfer(c);
        return;
    }
    c->launched_ms = c->last_byte_ms = kube_loop_now_ms(c->pool->loop);
    (void)curl_easy_setopt(c->easy, CURLOPT_MAXAGE_CONN, (long)idle_max_s(c->pool));
    if (c->idle_timeout_ms)
        kube_loop_timer_set(c->pool->loop, &c->idle, c->last_byte_ms + c->idle_timeout_ms);
    c->running = curl_multi_add_handle(kube_loop_curl(c->pool->loop), c->easy) == CURLM_OK;
    if (!c->running)
        on_transfer_done(c, CURLE_FAILED_INIT);
}

/* Send it again from the beginning if there are newer credentials. It keeps its slot. */
static bool sent_again(struct kube_transfer *c, int status)
{
    if (c->again || !kube_config_renewed(c->pool->config, c->generation, kube_loop_now_ms(c->pool->loop)))
        return false;
    count(c, status);
    if (c->running)
        curl_multi_remove_handle(kube_loop_curl(c->pool->loop), c->easy);
    curl_slist_free_all(c->headers);
    c->headers = NULL;
    c->body.max = c->body_max_bytes;
    buf_clear(&c->body);
    c->curl_error[0] = '\0';
    c->failure = (struct err){0};
    c->running = c->finished = c->over = c->paused = c->in_chunks = c->no_tls = false;
    c->again = true;
    send_transfer(c);
    return true;
}

static struct kube_transfer *transfer_of_turn(struct fairqueue_item *it)
{
    return (void *)((char *)it - offsetof(struct kube_transfer, turn));
}

/* Send the transfer that leaves the queue. */
static void launch(struct kube_transfer *c)
{
    struct http *h = c->pool;

    kube_config_refresh(h->config, kube_loop_now_ms(h->loop));
    c->generation = h->config->generation;
    kube_loop_connections(h->loop, 1);
    send_transfer(c);
}

/* Called when a transfer is queued or has ended, and when a slow one frees its slot. */
static void launch_waiting(void *ctx)
{
    struct http *h = ctx;
    struct fairqueue_item *it;

    while ((it = fairqueue_next(h->turns, kube_loop_now_ms(h->loop)))) {
        fairqueue_go(h->turns, it, kube_loop_now_ms(h->loop));
        launch(transfer_of_turn(it));
    }
    if (fairqueue_due_ms(h->turns) != INT64_MAX)
        kube_loop_timer_set(h->loop, &h->again, fairqueue_due_ms(h->turns));
}

/* ---- receiving */

/* Called inside libcurl: only store the bytes, or pause the transfer. */
static size_t on_bytes(char *p, size_t size, size_t n, void *ctx)
{
    struct kube_transfer *c = ctx;
    long status = 0;

    n *= size;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    c->last_byte_ms = kube_loop_now_ms(c->pool->loop);
    c->in_chunks = c->handler.chunk && status >= 200 && status <= 299;
    if (c->in_chunks && c->body.len && c->body.len + n > PENDING_MAX_BYTES) {
        c->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (c->handler.chunk && !c->in_chunks)
        c->body.max = KUBE_TRANSPORT_ERROR_MAX_BYTES;
    c->over = n > c->body.max - c->body.len;
    size_t fits = c->over ? c->body.max - c->body.len : n;
    if (buf_append(&c->body, p, fits, NULL) < 0 || c->over)
        return 0;
    if (c->in_chunks)
        kube_loop_task_add(c->pool->loop, &c->deliver);
    return n;
}

/* Called inside libcurl: connected, and about to send the first byte. Connecting may have taken long. */
static int on_connected(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
    struct kube_transfer *c = ctx;

    (void)ip, (void)local_ip, (void)port, (void)local_port;
    return is_shut(c) ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* False: the handler cancelled the transfer, which no longer exists. */
static bool deliver_chunk(struct kube_transfer *c)
{
    struct buf bytes = c->body;
    bool gone = false;

    c->body = (struct buf)BUF_INIT(bytes.max);
    c->gone = &gone;
    c->handler.chunk(c->handler.ctx, (struct sv){bytes.data, bytes.len});
    if (gone) {
        buf_release(&bytes);
        return false;
    }
    c->gone = NULL;
    buf_clear(&bytes);
    c->body = bytes;
    return true;
}

static void finish(struct kube_transfer *c)
{
    struct http *h = c->pool;
    struct kube_http_handler handler = c->handler;
    struct kube_http_response r = {.retry_after_ms = -1};
    const struct err failure = c->failure;
    const bool failed = failure.kind != ERR_NONE;
    curl_off_t retry_s = 0;
    long status = 0;

    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_s);
    r.status = failed ? 0 : (int)status;
    /* After a 401 or a TLS failure the server has not processed the request: it may be sent again. */
    if ((failed ? c->no_tls : status == 401) && sent_again(c, r.status))
        return;
    r.cut = c->over; /* a cut body is not an error: the status says whether the request succeeded */
    if (retry_s > 0)
        r.retry_after_ms = (int64_t)(retry_s < 86400 ? retry_s : 86400) * 1000;
    cleanup_buf struct buf body = c->body;
    c->body = (struct buf){0};
    count(c, r.status);
    if (!r.status)
        suspect(c);
    transfer_free(c);
    launch_waiting(h);
    r.body = (struct sv){buf_str(&body), body.len};
    handler.done(handler.ctx, failed ? NULL : &r, failed ? &failure : NULL);
}

/* A task of the loop: deliver the received bytes, then the end. */
static void deliver(void *ctx)
{
    struct kube_transfer *c = ctx;

    if (c->held || (c->in_chunks && c->body.len && !deliver_chunk(c)) || c->held)
        return;
    if (c->finished) {
        finish(c);
    } else if (c->paused) {
        c->paused = false;
        curl_easy_pause(c->easy, CURLPAUSE_CONT);
    }
}

/* ---- the interface */

static size_t body_limit(const struct kube_http_request *req, const struct kube_http_handler *handler)
{
    if (handler->chunk)
        return PENDING_MAX_BYTES + CURL_MAX_WRITE_SIZE;
    return req->body_max_bytes ? req->body_max_bytes : KUBE_TRANSPORT_BODY_MAX_BYTES;
}

static struct kube_transfer *http_start(void *ctx, const struct kube_http_request *req,
                                        const struct kube_http_handler *handler, struct err *err)
{
    struct http *h = ctx;
    CURL *easy = memory_must(curl_easy_init());

    if (endpoint_setup(h->config, h->user_agent, req, easy, err) < 0) {
        curl_easy_cleanup(easy);
        return NULL;
    }
    struct kube_transfer *c = memory_must(calloc(1, sizeof(*c)));
    *c = (struct kube_transfer){.pool = h,
                                .next = h->transfers,
                                .prev = &h->transfers,
                                .own_connection = req->own_connection,
                                .at_once = req->own_connection || req->urgent,
                                .handler = *handler,
                                .gate = req->gate,
                                .easy = easy,
                                .on_loop = {on_transfer_done, c},
                                .deliver = {.run = deliver, .ctx = c},
                                .idle = {.fire = on_idle, .ctx = c},
                                .body = BUF_INIT(body_limit(req, handler)),
                                .content_type = req->content_type,
                                .idle_timeout_ms = req->idle_timeout_ms};
    c->body_max_bytes = c->body.max;
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->shown, sizeof(c->shown), "%.*s", (int)strcspn(req->path, "?"), req->path);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, &c->on_loop);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->curl_error);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, c);
    if (c->next)
        c->next->prev = &c->next;
    h->transfers = c;
    if (c->at_once) {
        launch(c);
        return c;
    }
    fairqueue_join(h->turns, &c->turn, req->ns ? req->ns : "");
    /* Only writes free their slot when slow: admission webhooks do not delay reads, and 64 answers of the largest
     * size would need too much memory. */
    c->turn.keeps_slot = strcmp(req->method, "GET") == 0;
    fairqueue_wait(h->turns, &c->turn, req->later, kube_loop_now_ms(h->loop));
    launch_waiting(h);
    return c;
}

static void http_cancel(void *ctx, struct kube_transfer *transfer)
{
    suspect(transfer);
    transfer_free(transfer);
    launch_waiting(ctx);
}

static bool is_full(void *ctx, const char *ns)
{
    struct http *h = ctx;

    return fairqueue_is_full(h->turns, ns);
}

static void hold(void *ctx, struct kube_transfer *c, bool held)
{
    struct http *h = ctx;

    c->held = held;
    c->last_byte_ms = kube_loop_now_ms(h->loop);
    if (!held && (c->finished || c->paused || c->body.len))
        kube_loop_task_add(h->loop, &c->deliver);
}

struct kube_transport http_transport(struct http *h)
{
    return (struct kube_transport){http_start, http_cancel, h, is_full, hold};
}
