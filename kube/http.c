/* http.c - calls wait for a place, run, and make room for the next. */
#include "kube/http.h"

#include "common/memory.h"
#include "kube/auth.h"
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
    /* The API server closes what was idle for 90 s (apiserver: pkg/server/secure_serving.go): a request that leaves just then
     * dies with the connection. */
    IDLE_MAX_S = 80,
};

struct http_queue {
    struct http_call *first, **last;
    size_t n;
};

struct http {
    struct loop *loop;
    struct endpoint endpoint;
    struct auth *auth;
    struct http_call *calls;   /* all of them */
    struct http_queue waiting; /* for a place, the rate limit or a credential */
    struct http_queue held;    /* watches and urgent calls: for a credential */
    int running;
    int64_t suspect_ms; /* kept connections that were not used since are not trusted */
    struct loop_timer limit_timer;
    double qps, burst, tokens;
    int64_t tokens_ms;
    struct http_count counts[COUNTS_MAX];
    size_t n_counts;
};

static void launch_waiting(void *ctx);
static void on_credential(void *ctx);

static void enqueue(struct http_queue *q, struct http_call *c)
{
    c->queue = q;
    c->next_waiting = NULL;
    *q->last = c;
    q->last = &c->next_waiting;
    q->n++;
}

static void dequeue(struct http_call *c)
{
    struct http_queue *q = c->queue;
    struct http_call **at = &q->first;

    while (*at != c)
        at = &(*at)->next_waiting;
    *at = c->next_waiting;
    if (q->last == &c->next_waiting)
        q->last = at;
    q->n--;
    c->queue = NULL;
}

struct http *http_new(struct loop *l, struct kube_config *config, const struct http_options *options,
                      struct err *err)
{
    struct http *h = memory_must(calloc(1, sizeof(*h)));

    if (endpoint_init(&h->endpoint, config, options->user_agent, options->hurry, err) < 0) {
        free(h);
        return NULL;
    }
    h->loop = l;
    h->auth = auth_new(l, config, on_credential, h);
    h->waiting.last = &h->waiting.first;
    h->held.last = &h->held.first;
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
    if (c->queue)
        dequeue(c);
    else if (!c->own_connection)
        h->running--;
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
    auth_free(h->auth);
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

static int64_t idle_max_s(const struct http *h)
{
    int64_t s = (loop_now_ms(h->loop) - h->suspect_ms) / 1000 - 1; /* libcurl counts whole seconds */

    s = s < IDLE_MAX_S ? s : IDLE_MAX_S;
    return s > 1 ? s : 1;
}

static void on_ended(void *ctx, struct http_call *c, int status)
{
    struct http *h = ctx;

    count(h, c->method, status);
    if (!status)
        suspect(h, c);
    auth_answered(h->auth, c->serial, status);
    unlink_call(h, c);
    launch_waiting(h);
}

/* It keeps its place. */
static bool on_refused(void *ctx, struct http_call *c, int status)
{
    struct http *h = ctx;

    if (!auth_renewed(h->auth, c->generation))
        return false;
    count(h, c->method, status);
    call_again(c, idle_max_s(h));
    return true;
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

/* It has its place; `state` is what auth_ask said. */
static void launch(struct http *h, struct http_call *c, enum auth_state state, const struct err *why)
{
    h->running += !c->own_connection;
    c->serial = auth_serial(h->auth);
    c->generation = h->endpoint.config->generation;
    if (state == AUTH_FAILED)
        call_refuse(c, why);
    else
        call_launch(c, idle_max_s(h));
}

static void launch_waiting(void *ctx)
{
    struct http *h = ctx;
    struct err why;

    while (h->waiting.first && h->running < RUNNING_MAX) {
        enum auth_state state = auth_ask(h->auth, &why);
        if (state == AUTH_WAIT || !take_token(h))
            return;
        struct http_call *c = h->waiting.first;
        dequeue(c);
        launch(h, c, state, &why);
    }
}

static void launch_held(struct http *h, struct http_call *c)
{
    struct err why;
    enum auth_state state = auth_ask(h->auth, &why);

    if (state == AUTH_WAIT) {
        enqueue(&h->held, c);
        return;
    }
    launch(h, c, state, &why);
}

/* A plugin ended, well or not. Those that wait again after this go to the end of the queue. */
static void on_credential(void *ctx)
{
    struct http *h = ctx;

    for (size_t n = h->held.n; n; n--) {
        struct http_call *c = h->held.first;
        dequeue(c);
        launch_held(h, c);
    }
    launch_waiting(h);
}

static struct http_call *http_start(void *ctx, const struct http_request *req,
                                    const struct http_handler *handler, struct err *err)
{
    struct http *h = ctx;

    if (h->waiting.n + h->held.n >= WAITING_MAX) {
        err_set(err, ERR_TRANSIENT, "%s %.100s: %d requests are waiting already", req->method, req->path,
                WAITING_MAX);
        return NULL;
    }
    struct http_call *c = call_new(h->loop, &h->endpoint, req, handler, err);
    if (!c)
        return NULL;
    c->ended = on_ended;
    c->refused = on_refused;
    c->pool = h;
    c->next = h->calls;
    c->prev = &h->calls;
    if (c->next)
        c->next->prev = &c->next;
    h->calls = c;
    if (c->own_connection || c->urgent) {
        launch_held(h, c);
    } else {
        enqueue(&h->waiting, c);
        launch_waiting(h);
    }
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
