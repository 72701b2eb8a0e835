/* term.c - ask for the store's resourceVersion when this process becomes leader, by a list that matches no job. */
#include "operator/term.h"

#include "common/json.h"
#include "kube/version.h"
#include "operator/request.h"

#include <stdio.h>

enum { AGAIN_MS = 10000 };

static void ask_again(struct term *t)
{
    kube_loop_timer_set(t->loop, &t->again, kube_loop_now_ms(t->loop) + AGAIN_MS);
}

static void on_listed(void *ctx, struct kube_reply *reply)
{
    struct term *t = ctx;
    const char *version =
        json_str(json_find(reply->names, (const char *[]){"metadata", NULL}), "resourceVersion");

    t->call = NULL;
    if (reply->err)
        ask_again(t);
    else
        snprintf(t->version, sizeof(t->version), "%s", version ? version : "");
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
        ask_again(t);
}

void term_init(struct term *t, struct kube_loop *l, const struct kube_transport *transport, const char *ns)
{
    *t = (struct term){.loop = l, .transport = transport, .ns = ns};
    t->again = (struct kube_loop_timer){.fire = ask, .ctx = t};
}

void term_release(struct term *t)
{
    kube_call_cancel(t->call);
    t->call = NULL;
    kube_loop_timer_cancel(t->loop, &t->again);
}

void term_begin(struct term *t)
{
    term_release(t);
    t->version[0] = '\0';
    ask(t);
}

bool term_is_newer(const struct term *t, const char *job_version)
{
    return version_is_newer(job_version, t->version);
}
