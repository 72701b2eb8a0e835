/* http.c - calls wait for a place, run, and make room for the next. */
#include "kube/http.h"

#include "kube/call.h"
#include "kube/endpoint.h"

#include <stdlib.h>
#include <string.h>

enum {
    RUNNING_MAX = 8,      /* ordinary calls at a time */
    WAITING_MAX = 100000, /* beyond that someone is broken */
    CONNECTIONS_KEPT =
        32, /* in libcurl's cache, which counts those in use too: of ordinary calls and of watches */
    COUNTS_MAX = 64,
    IDLE_MAX_S = 118, /* libcurl's own limit for a kept connection */
};

struct http {
    struct loop *loop;
    struct endpoint endpoint;
    struct http_call *calls; /* all of them */
    struct http_call *waiting, **last_waiting;
    size_t n_waiting;
    int running;
    int64_t suspect_ms; /* kept connections that were not used since are not trusted */
    struct loop_timer limit_timer;
    double qps, burst, tokens;
    int64_t tokens_ms;
    struct http_count counts[COUNTS_MAX];
    size_t n_counts;
};

static void launch_waiting(void *ctx);

struct http *http_new(struct loop *l, struct kube_config *config, const struct http_options *options,
                      struct err *err)
{
    struct http *h = calloc(1, sizeof(*h));

    if (!h)
        abort();
    if (endpoint_init(&h->endpoint, config, options->user_agent, err) < 0) {
        free(h);
        return NULL;
    }
    h->loop = l;
    h->last_waiting = &h->waiting;
    h->limit_timer = (struct loop_timer){.fire = launch_waiting, .ctx = h};
    h->qps = options->qps;
    h->burst = options->burst > 1 ? options->burst : 1;
    h->tokens = h->burst;
    h->tokens_ms = loop_now_ms(l);
    h->suspect_ms = h->tokens_ms - 1000 * IDLE_MAX_S;
    curl_multi_setopt(loop_curl(l), CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    return h;
}

/* Out of every list of ours. */
static void unlink_call(struct http *h, struct http_call *c)
{
    if (c->waiting) {
        struct http_call **at = &h->waiting;
        while (*at != c)
            at = &(*at)->next_waiting;
        *at = c->next_waiting;
        if (h->last_waiting == &c->next_waiting)
            h->last_waiting = at;
        h->n_waiting--;
    } else if (!c->own_connection) {
        h->running--;
    }
    *c->prev = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    while (h->calls) {
        struct http_call *c = h->calls;
        unlink_call(h, c);
        call_free(c);
    }
    loop_timer_cancel(h->loop, &h->limit_timer);
    endpoint_release(&h->endpoint);
    free(h);
}

static void count(struct http *h, const char *method, int status)
{
    size_t i = 0;

    while (i < h->n_counts && (h->counts[i].status != status || strcmp(h->counts[i].method, method) != 0))
        i++;
    if (i == COUNTS_MAX)
        return;
    if (i == h->n_counts) {
        h->n_counts++;
        h->counts[i].status = status;
        snprintf(h->counts[i].method, sizeof(h->counts[i].method), "%s", method);
    }
    h->counts[i].n++;
}

const struct http_count *http_counts(const struct http *h, size_t *ret_n)
{
    *ret_n = h->n_counts;
    return h->counts;
}

/* A request got no answer. Where one connection died without a sound, its idle neighbours did so, too, and each of them
 * would cost another request its time, and the lease its holder. */
static void suspect(struct http *h, const struct http_call *c)
{
    if (!c->own_connection && c->running && c->launched_ms > h->suspect_ms)
        h->suspect_ms = c->launched_ms;
}

static void launch(struct http *h, struct http_call *c)
{
    int64_t s = (loop_now_ms(h->loop) - h->suspect_ms) / 1000 - 1; /* libcurl counts whole seconds */

    s = s < IDLE_MAX_S ? s : IDLE_MAX_S;
    call_launch(c, s > 1 ? s : 1);
}

static void on_ended(void *ctx, struct http_call *c, int status)
{
    struct http *h = ctx;

    count(h, c->method, status);
    if (!status)
        suspect(h, c);
    if (status == 401)
        kube_config_refresh(h->endpoint.config, loop_now_ms(h->loop), true);
    unlink_call(h, c);
    launch_waiting(h);
}

/* Whether the rate limit lets one more go; if not, when to ask again. */
static bool take_token(struct http *h)
{
    int64_t now = loop_now_ms(h->loop);

    if (h->qps <= 0)
        return true;
    h->tokens += (double)(now - h->tokens_ms) * h->qps / 1000.0;
    h->tokens = h->tokens < h->burst ? h->tokens : h->burst;
    h->tokens_ms = now;
    if (h->tokens >= 1) {
        h->tokens -= 1;
        return true;
    }
    loop_timer_set(h->loop, &h->limit_timer, now + 1 + (int64_t)((1 - h->tokens) * 1000.0 / h->qps));
    return false;
}

static void launch_waiting(void *ctx)
{
    struct http *h = ctx;

    while (h->waiting && h->running < RUNNING_MAX && take_token(h)) {
        struct http_call *c = h->waiting;
        h->waiting = c->next_waiting;
        if (!h->waiting)
            h->last_waiting = &h->waiting;
        c->waiting = false;
        h->n_waiting--;
        h->running++;
        launch(h, c);
    }
}

static void wait_for_place(struct http *h, struct http_call *c)
{
    c->waiting = true;
    *h->last_waiting = c;
    h->last_waiting = &c->next_waiting;
    h->n_waiting++;
    launch_waiting(h);
}

static struct http_call *http_start(void *ctx, const struct http_request *req,
                                    const struct http_handler *handler, struct err *err)
{
    struct http *h = ctx;

    if (h->n_waiting >= WAITING_MAX) {
        err_set(err, ERR_TRANSIENT, "%s %.100s: %d requests are waiting already", req->method, req->path,
                WAITING_MAX);
        return NULL;
    }
    kube_config_refresh(h->endpoint.config, loop_now_ms(h->loop), false);
    struct http_call *c = call_new(h->loop, &h->endpoint, req, handler, err);
    if (!c)
        return NULL;
    c->ended = on_ended;
    c->pool = h;
    c->next = h->calls;
    c->prev = &h->calls;
    if (c->next)
        c->next->prev = &c->next;
    h->calls = c;
    if (!c->own_connection && !c->urgent) {
        wait_for_place(h, c);
        return c;
    }
    h->running += !c->own_connection;
    launch(h, c);
    return c;
}

static void http_cancel(void *ctx, struct http_call *call)
{
    struct http *h = ctx;

    suspect(h, call);
    unlink_call(h, call);
    call_free(call);
    launch_waiting(h);
}

struct transport http_transport(struct http *h)
{
    return (struct transport){http_start, http_cancel, h};
}
