/* transfer.c - run one libcurl transfer: libcurl's callbacks collect bytes, and the event loop calls the handler. */
#include "kube/transfer.h"
#include "common/memory.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a stream that were received but not delivered. Beyond this, stop reading. */
enum { PENDING_MAX_BYTES = 64 << 10 };

void transfer_free(struct kube_transfer *c)
{
    kube_loop_timer_cancel(c->loop, &c->idle);
    kube_loop_task_cancel(c->loop, &c->deliver);
    if (c->gone)
        *c->gone = true;
    if (c->running)
        curl_multi_remove_handle(kube_loop_curl(c->loop), c->easy);
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    buf_release(&c->body);
    free(c->content_type);
    free(c);
}

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

/* Called inside libcurl: only store the bytes, or pause the transfer. */
static size_t on_bytes(char *p, size_t size, size_t n, void *ctx)
{
    struct kube_transfer *c = ctx;
    long status = 0;

    n *= size;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    c->last_byte_ms = kube_loop_now_ms(c->loop);
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
        kube_loop_task_add(c->loop, &c->deliver);
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
    struct kube_http_handler handler = c->handler;
    struct kube_http_response r = {.retry_after_ms = -1};
    const struct err failure = c->failure;
    const bool failed = failure.kind != ERR_NONE;
    curl_off_t retry_s = 0;
    long status = 0;

    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &retry_s);
    /* After a 401 or a TLS failure the server has not processed the request: it may be sent again. */
    if (!c->again && (failed ? c->no_tls : status == 401) && c->refused(c->pool, c, failed ? 0 : (int)status))
        return;
    r.status = (int)status;
    r.cut = c->over; /* a cut body is not an error: the status says whether the request succeeded */
    if (retry_s > 0)
        r.retry_after_ms = (int64_t)(retry_s < 86400 ? retry_s : 86400) * 1000;
    cleanup_buf struct buf body = c->body;
    c->body = (struct buf){0};
    c->ended(c->pool, c, failed ? 0 : r.status);
    transfer_free(c);
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

void transfer_hold(struct kube_transfer *c, bool held)
{
    c->held = held;
    c->last_byte_ms = kube_loop_now_ms(c->loop);
    if (!held && (c->finished || c->paused || c->body.len))
        kube_loop_task_add(c->loop, &c->deliver);
}

static void end_transfer(struct kube_transfer *c)
{
    c->finished = true;
    kube_loop_timer_cancel(c->loop, &c->idle);
    kube_loop_task_add(c->loop, &c->deliver);
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
        c->last_byte_ms = kube_loop_now_ms(c->loop);
    int64_t due = c->last_byte_ms + c->idle_timeout_ms;
    if (kube_loop_now_ms(c->loop) < due) {
        kube_loop_timer_set(c->loop, &c->idle, due);
        return;
    }
    snprintf(why, sizeof(why), "no data for %lld ms", (long long)c->idle_timeout_ms);
    fail(c, ERR_TIMEOUT, why);
    end_transfer(c);
}

void transfer_launch(struct kube_transfer *c, int64_t idle_max_s)
{
    struct err err;

    if (is_shut(c)) {
        end_transfer(c);
        return;
    }
    if (endpoint_sign(c->endpoint, c->content_type, c->easy, &c->headers, &err) < 0) {
        fail(c, err.kind, err.msg);
        end_transfer(c);
        return;
    }
    c->launched_ms = c->last_byte_ms = kube_loop_now_ms(c->loop);
    (void)curl_easy_setopt(c->easy, CURLOPT_MAXAGE_CONN, (long)idle_max_s);
    if (c->idle_timeout_ms)
        kube_loop_timer_set(c->loop, &c->idle, c->last_byte_ms + c->idle_timeout_ms);
    c->running = curl_multi_add_handle(kube_loop_curl(c->loop), c->easy) == CURLM_OK;
    if (!c->running)
        on_transfer_done(c, CURLE_FAILED_INIT);
}

void transfer_again(struct kube_transfer *c, int64_t idle_max_s)
{
    if (c->running)
        curl_multi_remove_handle(kube_loop_curl(c->loop), c->easy);
    curl_slist_free_all(c->headers);
    c->headers = NULL;
    c->body.max = c->body_max_bytes;
    buf_clear(&c->body);
    c->curl_error[0] = '\0';
    c->failure = (struct err){0};
    c->running = c->finished = c->over = c->paused = c->in_chunks = c->no_tls = false;
    c->again = true;
    transfer_launch(c, idle_max_s);
}

static size_t body_limit(const struct kube_http_request *req, const struct kube_http_handler *handler)
{
    if (handler->chunk)
        return PENDING_MAX_BYTES + CURL_MAX_WRITE_SIZE;
    return req->body_max_bytes ? req->body_max_bytes : KUBE_TRANSPORT_BODY_MAX_BYTES;
}

struct kube_transfer *transfer_new(struct kube_loop *l, const struct endpoint *e,
                                   const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err)
{
    CURL *easy = curl_easy_init();
    struct kube_transfer *c = calloc(1, sizeof(*c));

    if (!easy || !c)
        memory_exhausted();
    *c = (struct kube_transfer){.loop = l,
                                .endpoint = e,
                                .easy = easy,
                                .handler = *handler,
                                .own_connection = req->own_connection,
                                .urgent = req->urgent,
                                .gate = req->gate,
                                .idle_timeout_ms = req->idle_timeout_ms,
                                .body = BUF_INIT(body_limit(req, handler))};
    c->body_max_bytes = c->body.max;
    c->transfer = (struct kube_loop_transfer){on_transfer_done, c};
    c->deliver = (struct kube_loop_task){.run = deliver, .ctx = c};
    c->idle = (struct kube_loop_timer){.fire = on_idle, .ctx = c};
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->shown, sizeof(c->shown), "%.*s", (int)strcspn(req->path, "?"), req->path);
    if (req->content_type) {
        c->content_type = memory_strdup(req->content_type);
    }
    if (endpoint_setup(e, req, easy, err) < 0) {
        transfer_free(c);
        return NULL;
    }
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, &c->transfer);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->curl_error);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, c);
    return c;
}
