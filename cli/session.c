/* session.c - open the connection by the kubeconfig, send single requests and wait for their answers. */
#include "cli/session.h"

#include "cli/say.h"
#include "common/json.h"
#include "kube/client.h"
#include "operator/api/trainjob.h"

#include <stdio.h>
#include <string.h>

const struct kube_resource SESSION_JOBS = {TRAINJOB_GROUP, TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND,
                                           false};

int session_open(struct session *s, const struct args *a, struct err *err)
{
    *s = (struct session){0};
    if (kube_config_find(&s->config, args_text(a, "kubeconfig", NULL), args_text(a, "context", NULL), err) <
        0)
        return -1;
    if (kube_config_warning(&s->config))
        say("kubectl ptj", "warning: %s", kube_config_warning(&s->config));
    s->ns = args_text(a, "namespace", s->config.namespace_name);
    s->loop = kube_loop_new(clock_system(), err);
    s->http = s->loop ? http_new(s->loop, &s->config, "kubectl-ptj/" CLI_VERSION, err) : NULL;
    if (!s->http)
        return -1;
    s->api = http_transport(s->http);
    return 0;
}

void session_close(struct session *s)
{
    http_free(s->http);
    kube_loop_free(s->loop);
    kube_config_release(&s->config);
    *s = (struct session){0};
}

struct answer {
    struct kube_loop *loop;
    cJSON *object;
    bool wanted, done;
    struct err err;
};

static void on_answer(void *ctx, struct kube_reply *reply)
{
    struct answer *a = ctx;

    a->done = true;
    if (reply->err)
        a->err = *reply->err;
    else if (reply->unreadable && a->wanted)
        a->err = *reply->unreadable;
    else
        a->object = TAKE(reply->object);
    kube_loop_stop(a->loop);
}

int session_call(struct session *s, const struct kube_request *r, cJSON **ret, struct err *err)
{
    struct answer a = {.loop = s->loop, .wanted = ret != NULL};
    struct kube_call *call = kube_call_start(&s->api, r, on_answer, &a, err);

    if (!call)
        return -1;
    if (kube_loop_run(s->loop, err) < 0) {
        if (!a.done)
            kube_call_cancel(call);
        cJSON_Delete(a.object);
        return -1;
    }
    if (a.err.kind) {
        *err = a.err;
        return session_explain(s, r, err);
    }
    if (ret)
        *ret = TAKE(a.object);
    cJSON_Delete(a.object);
    return 0;
}

static const char *verb_of(const struct kube_request *r)
{
    static const char *const NAMES[] = {
        [KUBE_GET] = "get",       [KUBE_LIST] = "list",   [KUBE_WATCH] = "watch",  [KUBE_CREATE] = "create",
        [KUBE_UPDATE] = "update", [KUBE_PATCH] = "patch", [KUBE_DELETE] = "delete"};

    return NAMES[r->verb];
}

/* The server's own text of a 403 is long and begins with what the user knows. */
static int explain(const struct session *s, const struct kube_request *r, struct err *err)
{
    const bool job = r->resource == &SESSION_JOBS;
    const struct err was = *err;

    if (was.code == 403)
        return err_set(
            err, was.kind,
            "you lack the right to %s %s%s%s%s%s in %s%s: ask for it, or try `kubectl auth can-i --list`",
            verb_of(r), r->resource->plural, r->resource->group[0] ? "." : "", r->resource->group,
            r->subresource ? "/" : "", r->subresource ? r->subresource : "",
            r->ns                         ? "namespace "
            : r->resource->cluster_scoped ? "the cluster"
                                          : "all namespaces",
            r->ns ? r->ns : "");
    if (was.code == 404 && job && r->name) {
        const bool clear = strstr(was.msg, r->name); /* it is the job that the server does not know */
        return err_set(err, was.kind, "there is no training job \"%.63s\" in namespace %.63s%s%.100s",
                       r->name, r->ns, clear ? "" : ": ", clear ? "" : was.msg);
    }
    if (was.code == 404 && job && !r->name)
        return err_set(err, was.kind,
                       "API server %.80s knows no %s: is the operator installed there? (%.60s)",
                       s->config.server, r->resource->kind, was.msg);
    if (!was.code)
        return err_set(err, was.kind, "API server %.80s: %.140s", s->config.server, was.msg);
    return -1;
}

int session_explain(const struct session *s, const struct kube_request *r, struct err *err)
{
    const int code = err->code;

    (void)explain(s, r, err);
    err->code = code;
    return -1;
}

int session_job(struct session *s, const char *name, cJSON **ret, struct err *err)
{
    const struct kube_request r = {.verb = KUBE_GET, .resource = &SESSION_JOBS, .ns = s->ns, .name = name};

    return session_call(s, &r, ret, err);
}

int session_patch_job(struct session *s, const char *name, const char *patch, const char *what,
                      struct err *err)
{
    const struct kube_request r = {.verb = KUBE_PATCH,
                                   .resource = &SESSION_JOBS,
                                   .ns = s->ns,
                                   .name = name,
                                   .field_manager = "kubectl-ptj",
                                   .body = sv_from(patch)};

    if (session_call(s, &r, NULL, err) < 0)
        return -1;
    printf("%s %s\n", name, what);
    return 0;
}
