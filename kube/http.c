/* http.c - the request pool over libcurl: queues transfers, limits how many are in flight, reuses
 * connections. */
#include "kube/http.h"

#include "common/memory.h"
#include "kube/endpoint.h"
#include "kube/fairqueue.h"
#include "kube/transfer.h"

#include <stdlib.h>
#include <string.h>

enum {
    CONNECTIONS_IDLE = HTTP_SLOTS + HTTP_RESERVED,
    COUNTS_MAX = 64,
    /* The API server closes connections that were idle for 90 s (apiserver: pkg/server/secure_serving.go). A request
     * sent at that moment would fail. */
    IDLE_MAX_S = 80,
};

static const struct fairqueue_limits LIMITS = {.slots = HTTP_SLOTS,
                                               .reserved = HTTP_RESERVED,
                                               .share_max = HTTP_SLOTS,
                                               .slow_ms = HTTP_SLOW_MS,
                                               .slow_share_max = HTTP_SLOW_SHARE_MAX,
                                               .slow_max = HTTP_SLOW_MAX,
                                               .later_ms = HTTP_LATER_MS};

struct http {
    struct kube_loop *loop;
    struct endpoint endpoint;
    struct kube_transfer *transfers; /* all of them */
    struct fairqueue *turns;         /* ordinary transfers that wait for a slot */
    int64_t suspect_ms;              /* connections idle since before this are not reused */
    struct kube_loop_timer again;    /* when a slot may become free */
    struct http_count counts[COUNTS_MAX];
    size_t n_counts;
};

static void launch_waiting(void *ctx);

static bool at_once(const struct kube_transfer *c)
{
    return c->own_connection || c->urgent;
}

struct http *http_new(struct kube_loop *l, struct kube_config *config, const char *user_agent,
                      struct err *err)
{
    struct http *h = memory_must(calloc(1, sizeof(*h)));

    if (endpoint_init(&h->endpoint, config, user_agent, err) < 0) {
        free(h);
        return NULL;
    }
    h->loop = l;
    h->turns = fairqueue_new(&LIMITS);
    h->again = (struct kube_loop_timer){.fire = launch_waiting, .ctx = h};
    h->suspect_ms = kube_loop_now_ms(l) - 1000 * IDLE_MAX_S;
    /* About 50 KiB each. Connections opened for many slow transfers are closed after them. */
    kube_loop_connections(l, CONNECTIONS_IDLE);
    return h;
}

static bool is_out(const struct kube_transfer *c)
{
    return at_once(c) || c->turn.state == FAIRQUEUE_OUT || c->turn.state == FAIRQUEUE_SLOW;
}

/* Remove it from the list, from the queue and from the count of connections. */
static void unlink_transfer(struct http *h, struct kube_transfer *c)
{
    if (is_out(c))
        kube_loop_connections(h->loop, -1);
    if (!at_once(c))
        fairqueue_leave(h->turns, &c->turn);
    *c->prev = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    while (h->transfers) {
        struct kube_transfer *c = h->transfers;
        unlink_transfer(h, c);
        transfer_free(c);
    }
    fairqueue_free(h->turns);
    kube_loop_timer_cancel(h->loop, &h->again);
    kube_loop_connections(h->loop, -CONNECTIONS_IDLE);
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

/* A request got no answer, so its connection may have died silently. Connections that were idle at that time
 * may be dead, too: each would cost another request its timeout, and the leader its lease. */
static void suspect(struct http *h, const struct kube_transfer *c)
{
    if (!c->own_connection && c->running && c->launched_ms > h->suspect_ms)
        h->suspect_ms = c->launched_ms;
}

static int64_t idle_max_s(const struct http *h)
{
    int64_t s = (kube_loop_now_ms(h->loop) - h->suspect_ms) / 1000 - 1; /* libcurl counts whole seconds */

    s = s < IDLE_MAX_S ? s : IDLE_MAX_S;
    return s > 1 ? s : 1;
}

static void on_ended(void *ctx, struct kube_transfer *c, int status)
{
    struct http *h = ctx;

    count(h, c->method, status);
    if (!status)
        suspect(h, c);
    unlink_transfer(h, c);
    launch_waiting(h);
}

/* A transfer that is sent again keeps its slot. */
static bool on_refused(void *ctx, struct kube_transfer *c, int status)
{
    struct http *h = ctx;

    if (!kube_config_renewed(h->endpoint.config, c->generation, kube_loop_now_ms(h->loop)))
        return false;
    count(h, c->method, status);
    transfer_again(c, idle_max_s(h));
    return true;
}

static struct kube_transfer *transfer_of_turn(struct fairqueue_item *it)
{
    return (void *)((char *)it - offsetof(struct kube_transfer, turn));
}

/* Send the transfer that leaves the queue. */
static void launch(struct http *h, struct kube_transfer *c)
{
    kube_config_refresh(h->endpoint.config, kube_loop_now_ms(h->loop));
    c->generation = h->endpoint.config->generation;
    kube_loop_connections(h->loop, 1);
    transfer_launch(c, idle_max_s(h));
}

/* Called when a transfer is queued or has ended, and when a slow one frees its slot. */
static void launch_waiting(void *ctx)
{
    struct http *h = ctx;
    struct fairqueue_item *it;

    while ((it = fairqueue_next(h->turns, kube_loop_now_ms(h->loop)))) {
        fairqueue_go(h->turns, it, kube_loop_now_ms(h->loop));
        launch(h, transfer_of_turn(it));
    }
    if (fairqueue_due_ms(h->turns) != INT64_MAX)
        kube_loop_timer_set(h->loop, &h->again, fairqueue_due_ms(h->turns));
}

static struct kube_transfer *http_start(void *ctx, const struct kube_http_request *req,
                                        const struct kube_http_handler *handler, struct err *err)
{
    struct http *h = ctx;

    struct kube_transfer *c = transfer_new(h->loop, &h->endpoint, req, handler, err);
    if (!c)
        return NULL;
    c->ended = on_ended;
    c->refused = on_refused;
    c->pool = h;
    c->next = h->transfers;
    c->prev = &h->transfers;
    if (c->next)
        c->next->prev = &c->next;
    h->transfers = c;
    if (at_once(c)) {
        launch(h, c);
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
    struct http *h = ctx;

    suspect(h, transfer);
    unlink_transfer(h, transfer);
    transfer_free(transfer);
    launch_waiting(h);
}

static bool is_full(void *ctx, const char *ns)
{
    struct http *h = ctx;

    return fairqueue_is_full(h->turns, ns);
}

static void hold(void *ctx, struct kube_transfer *transfer, bool held)
{
    (void)ctx;
    transfer_hold(transfer, held);
}

struct kube_transport http_transport(struct http *h)
{
    return (struct kube_transport){http_start, http_cancel, h, is_full, hold};
}
