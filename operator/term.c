/* term.c - one list of jobs, empty since no job has such a name, for its version. */
#include "operator/term.h"

#include "common/json.h"
#include "operator/request.h"

enum { AGAIN_MS = 10000 };

static void ask(void *ctx);

static void on_listed(void *ctx, struct kube_reply *reply)
{
    struct term *t = ctx;
    const char *version =
        json_str(json_find(reply->names, (const char *[]){"metadata", NULL}), "resourceVersion");

    t->call = NULL;
    if (reply->err)
        loop_timer_set(t->loop, &t->again, loop_now_ms(t->loop) + AGAIN_MS);
    else if (!version || !sv_i64(sv_from(version), 0, INT64_MAX, &t->version))
        t->version = -1;
}

static void ask(void *ctx)
{
    struct term *t = ctx;
    struct err err;

    t->call = kube_call_start(
        t->transport,
        &(struct kube_request){
            .verb = KUBE_LIST, .resource = &TRAINJOBS, .ns = t->ns, .field_selector = "metadata.name=-"},
        on_listed, t, &err);
    if (!t->call)
        loop_timer_set(t->loop, &t->again, loop_now_ms(t->loop) + AGAIN_MS);
}

void term_init(struct term *t, struct loop *l, const struct transport *transport, const char *ns)
{
    *t = (struct term){.loop = l, .transport = transport, .ns = ns, .version = -1};
    t->again = (struct loop_timer){.fire = ask, .ctx = t};
}

void term_release(struct term *t)
{
    kube_call_cancel(t->call);
    t->call = NULL;
    loop_timer_cancel(t->loop, &t->again);
}

void term_begin(struct term *t)
{
    term_release(t);
    t->version = -1;
    ask(t);
}

bool term_is_newer(const struct term *t, const char *job_version)
{
    int64_t version;

    return t->version >= 0 && sv_i64(sv_from(job_version), 0, INT64_MAX, &version) && version > t->version;
}
