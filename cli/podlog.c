/* podlog.c - GET .../pods/NAME/log with its query. */
#include "cli/podlog.h"

#include "kube/apistatus.h"

enum { SILENCE_MS = 10000 };

struct kube_request podlog_right(const struct session *s, const struct podlog *l)
{
    return (struct kube_request){
        .verb = KUBE_GET, .resource = &KUBE_PODS, .ns = s->ns, .name = l->pod, .subresource = "log"};
}

int podlog_request(const struct session *s, const struct podlog *l, struct arena *a,
                   struct kube_http_request *out, struct err *err)
{
    const struct kube_request right = podlog_right(s, l);

    if (kube_request_build(&right, a, out, err) < 0)
        return -1;
    /* A container's name is a DNS label, and a time has nothing that a query would have to escape. */
    const char *path = arena_printf(a, "%s?container=%s", out->path, l->container);
    if (l->times)
        path = arena_printf(a, "%s&timestamps=true", path);
    if (l->since)
        path = arena_printf(a, "%s&sinceTime=%s", path, l->since);
    else if (l->since_s)
        path = arena_printf(a, "%s&sinceSeconds=%lld", path, (long long)l->since_s);
    if (l->tail >= 0 && !l->since)
        path = arena_printf(a, "%s&tailLines=%lld", path, (long long)l->tail);
    if (l->limit)
        path = arena_printf(a, "%s&limitBytes=%lld", path, (long long)l->limit);
    if (l->follow)
        path = arena_printf(a, "%s&follow=true", path);
    out->path = path;
    out->own_connection = true; /* 64 at once, of which none waits for a free connection */
    out->timeout_ms = 0;
    out->idle_timeout_ms = l->follow ? 0 : SILENCE_MS;
    return 0;
}

struct reading {
    struct kube_loop *loop;
    struct buf *text;
    bool done;
    struct err err;
};

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
{
    struct reading *reading = ctx;
    struct kube_status status;

    reading->done = true;
    if (err)
        reading->err = *err;
    else if (kube_status_check(r, &status, &reading->err) == 0)
        (void)buf_append(reading->text, r->body.p, r->body.len, &reading->err);
    kube_loop_stop(reading->loop);
}

int podlog_read(struct session *s, const struct podlog *l, struct buf *ret, struct err *err)
{
    struct reading reading = {.loop = s->loop, .text = ret};
    const struct kube_http_handler handler = {.ctx = &reading, .done = on_done};
    const struct kube_request right = podlog_right(s, l);
    cleanup_arena struct arena a = {0};
    struct kube_http_request request;

    if (podlog_request(s, l, &a, &request, err) < 0)
        return -1;
    request.timeout_ms = KUBE_TRANSPORT_TIMEOUT_MS;
    if (s->stopped)
        return session_stopped(err);
    struct kube_transfer *transfer = kube_transport_start(&s->api, &request, &handler, err);
    if (!transfer)
        return -1;
    const int rc = session_wait(s, &reading.done, err);
    if (!reading.done)
        kube_transport_cancel(&s->api, transfer);
    if (rc < 0 || !reading.err.kind)
        return rc;
    *err = reading.err;
    return session_explain(s, &right, err);
}
