/* client.c - send one API request and parse its answer as JSON. */
#include "kube/client.h"

#include "common/json.h"
#include "common/memory.h"
#include "kube/skim.h"

#include <stdlib.h>

struct kube_request_run {
    struct kube_transport transport;
    struct kube_transfer *http;
    void (*done)(void *ctx, struct kube_reply *reply);
    void *ctx;
};

/* Names from the part of the body that was received. NULL: it was cut before them. */
static cJSON *skim_names(struct sv body)
{
    cleanup_skim struct skim s;

    skim_init(&s, false);
    skim_feed(&s, body);
    return skim_has_names(s.tree) ? skim_take(&s) : NULL;
}

static cJSON *read_body(const struct kube_http_response *r, struct err *err)
{
    if (!r->cut)
        return json_parse(r->body.p, r->body.len, err);
    err_set(err, ERR_INVALID, "over %zu bytes of JSON", r->body.len);
    err->code = JSON_UNREADABLE;
    return NULL;
}

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *failed)
{
    struct kube_request_run *c = ctx;
    struct kube_request_run run = *c;
    struct kube_reply reply = {.status = {.retry_after_ms = -1}};
    cleanup_json cJSON *skimmed = NULL;
    struct err err;

    free(c);
    if (failed) {
        reply.err = failed;
    } else if (kube_status_check(r, &reply.status, &err) < 0) {
        reply.err = &err;
    } else {
        reply.status.code = r->status;
        reply.object = read_body(r, &err);
        reply.names = reply.object;
        if (!reply.object && err.code == JSON_UNREADABLE) {
            reply.names = skimmed = skim_names(r->body);
            reply.unreadable = &err;
        } else if (!reply.object) {
            /* The body was damaged in transit: the request itself is valid. */
            err.kind = ERR_TRANSIENT;
            reply.err = &err;
        }
    }
    run.done(run.ctx, &reply);
    cJSON_Delete(reply.object);
}

struct kube_request_run *kube_request_start(const struct kube_transport *t, const struct kube_request *r,
                                            void (*done)(void *ctx, struct kube_reply *reply), void *ctx,
                                            struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct kube_http_request req;

    if (kube_request_build(r, &a, &req, err) < 0)
        return NULL;
    struct kube_request_run *c = memory_must(calloc(1, sizeof(*c)));
    *c = (struct kube_request_run){.transport = *t, .done = done, .ctx = ctx};
    c->http = kube_transport_start(t, &req, &(struct kube_http_handler){.ctx = c, .done = on_done}, err);
    if (!c->http) {
        free(c);
        return NULL;
    }
    return c;
}

void kube_request_cancel(struct kube_request_run *c)
{
    if (!c)
        return;
    kube_transport_cancel(&c->transport, c->http);
    free(c);
}
