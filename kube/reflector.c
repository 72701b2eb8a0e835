/* reflector.c - run the watcher's state machine over the transport and the event loop. */
#include "kube/reflector.h"
#include "common/memory.h"

#include <malloc.h>
#include <stdlib.h>

struct reflector {
    struct kube_loop *loop;
    struct kube_transport transport;
    struct watcher *watcher;
    struct kube_transfer *transfer;
    struct kube_loop_timer next, trim;
    struct kube_watcher_stats trimmed; /* stats at the last malloc_trim */
    int64_t trimmed_ms;
};

enum { TRIM_SPACING_MS = 1000, TRIM_BYTES = 256 << 10 };

static void ask(void *ctx);
static void trim(void *ctx);

struct reflector *reflector_new(struct kube_loop *l, const struct kube_transport *t,
                                const struct kube_watcher_options *options, const struct watcher_sink *sink)
{
    struct reflector *r = memory_must(calloc(1, sizeof(*r)));

    r->loop = l;
    r->transport = *t;
    r->watcher = watcher_new(options, sink);
    r->next = (struct kube_loop_timer){.fire = ask, .ctx = r};
    r->trim = (struct kube_loop_timer){.fire = trim, .ctx = r};
    kube_loop_timer_set(l, &r->next, kube_loop_now_ms(l));
    return r;
}

void reflector_free(struct reflector *r)
{
    if (!r)
        return;
    if (r->transfer)
        kube_transport_cancel(&r->transport, r->transfer);
    kube_loop_timer_cancel(r->loop, &r->next);
    kube_loop_timer_cancel(r->loop, &r->trim);
    watcher_free(r->watcher);
    free(r);
}

void reflector_relist(struct reflector *r, bool at_once)
{
    bool cancel = watcher_relist(r->watcher, at_once);

    if (r->transfer && cancel) {
        kube_transport_cancel(&r->transport, r->transfer);
        r->transfer = NULL;
        at_once = true;
    }
    if (at_once)
        kube_loop_timer_set(r->loop, &r->next, kube_loop_now_ms(r->loop));
}

const char *reflector_version(const struct reflector *r)
{
    return watcher_version(r->watcher);
}

struct kube_watcher_stats reflector_stats(const struct reflector *r)
{
    return watcher_stats(r->watcher);
}

static void trim(void *ctx)
{
    struct reflector *r = ctx;

    r->trimmed_ms = kube_loop_now_ms(r->loop);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* A list fragments the heap, and so do events of TRIM_BYTES: return the free pages to the system, at most
 * once a second. */
static void trim_after_much(struct reflector *r)
{
    struct kube_watcher_stats s = watcher_stats(r->watcher);
    int64_t due = r->trimmed_ms ? r->trimmed_ms + TRIM_SPACING_MS : 0;
    int64_t now = kube_loop_now_ms(r->loop);

    if (s.syncs == r->trimmed.syncs && s.bytes - r->trimmed.bytes < TRIM_BYTES)
        return;
    r->trimmed = s;
    if (due <= now)
        trim(r);
    else
        kube_loop_timer_set(r->loop, &r->trim, due);
}

static void ended(struct reflector *r, const struct kube_http_response *response, const struct err *err)
{
    int64_t now = kube_loop_now_ms(r->loop);
    int64_t delay = watcher_end(r->watcher, now, response, err);

    trim_after_much(r);
    kube_loop_timer_set(r->loop, &r->next, now + delay);
}

static void on_chunk(void *ctx, struct sv bytes)
{
    struct reflector *r = ctx;

    if (watcher_feed(r->watcher, bytes, kube_loop_now_ms(r->loop)) == 0) {
        trim_after_much(r);
        return;
    }
    kube_transport_cancel(&r->transport, r->transfer);
    r->transfer = NULL;
    ended(r, NULL, NULL);
}

static void on_done(void *ctx, const struct kube_http_response *response, const struct err *err)
{
    struct reflector *r = ctx;

    r->transfer = NULL;
    ended(r, response, err);
}

static void ask(void *ctx)
{
    struct reflector *r = ctx;
    cleanup_arena struct arena a = {0};
    struct kube_http_request req;
    struct err err;

    watcher_begin(r->watcher, kube_loop_now_ms(r->loop));
    if (watcher_request(r->watcher, &a, &req, &err) == 0)
        r->transfer = kube_transport_start(
            &r->transport, &req, &(struct kube_http_handler){.ctx = r, .chunk = on_chunk, .done = on_done},
            &err);
    if (!r->transfer)
        ended(r, NULL, &err);
}
