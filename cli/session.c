/* session.c - open the connection through kubectl, send single requests and wait for their answers. */
#include "cli/session.h"

#include "common/json.h"
#include "common/memory.h"
#include "common/sv.h"
#include "kube/client.h"
#include "operator/api/decode.h"
#include "operator/api/trainjob.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS_MAX = 64 << 10 };

const struct kube_resource SESSION_JOBS = {TRAINJOB_GROUP, TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND,
                                           false};

static bool has_answered(const struct http *http)
{
    size_t n;
    const struct http_count *rows = http_counts(http, &n);

    while (n && !rows[n - 1].status)
        n--;
    return n;
}

/* Before the first answer it may be a question of a credential plug-in; later it would stand in the middle of a screen. */
static void on_words(void *ctx, short revents)
{
    struct session *s = ctx;

    (void)revents;
    kubectl_proxy_read(&s->proxy, has_answered(s->http));
    if (s->proxy.ended)
        kube_loop_fd_remove(s->loop, &s->words);
}

bool session_may_ask(const struct http *http)
{
    return isatty(STDIN_FILENO) && !has_answered(http);
}

/* Of http_transport(ctx): a person at the terminal takes as long as they need. */
static struct kube_transfer *start(void *ctx, const struct kube_http_request *r,
                                   const struct kube_http_handler *handler, struct err *err)
{
    const struct kube_transport http = http_transport(ctx);
    struct kube_http_request patient = *r;

    if (session_may_ask(ctx))
        patient.timeout_ms = patient.idle_timeout_ms = 0;
    return kube_transport_start(&http, &patient, handler, err);
}

int session_open(struct session *s, const struct args *a, struct err *err)
{
    *s = (struct session){.options = BUF_INIT(OPTIONS_MAX)};
    kubectl_options(a, &s->options);
    if (buf_check(&s->options, err) < 0 || kubectl_proxy_start(&s->proxy, a, err) < 0)
        return -1;
    s->ns = args_text(a, "namespace", s->proxy.ns);
    if (!decode_is_dns_label(s->ns, DECODE_LABEL_BYTES,
                             false)) /* from here on it stands in commands to paste */
        return err_set(err, ERR_INVALID, "namespace \"%.80s\": expected a-z, 0-9 and -", s->ns);
    s->config.server = memory_strdup("http://localhost");
    s->config.socket = memory_strdup(s->proxy.folder.socket);
    s->loop = kube_loop_new(clock_system(), err);
    s->http = s->loop ? http_new(s->loop, &s->config, "kubectl-ptj/" CLI_VERSION, err) : NULL;
    if (!s->http)
        return -1;
    s->api = http_transport(s->http);
    s->api.start = start;
    s->words = (struct kube_loop_fd){.ready = on_words, .ctx = s, .fd = s->proxy.child.err, .events = POLLIN};
    return kube_loop_fd_add(s->loop, &s->words, err);
}

void session_close(struct session *s)
{
    kubectl_proxy_end(&s->proxy); /* first: it reports each request that ends with us */
    http_free(s->http);
    kube_loop_free(s->loop);
    kube_config_release(&s->config);
    buf_release(&s->options);
    *s = (struct session){0};
}

/* kubectl's answer when it gets none: its words, in plain text. An API server's own has a reason behind the number. */
static const char AWAY[] = " (HTTP 500)";

static int away(const struct session *s, struct err *err)
{
    const struct err was = *err;
    const size_t len = strlen(was.msg), cut = was.code ? sizeof(AWAY) - 1 : 0;

    if (s->proxy.ended)
        return err_set(err, was.kind, "kubectl proxy, through which requests go, has ended");
    return err_set(err, was.kind, "API server: %.*s; its address is in: kubectl config view --minify%s",
                   (int)(len - cut), was.msg, buf_str(&s->options));
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

void session_die_of(int signal)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int session_stopped(struct err *err)
{
    return err_set(err, ERR_FATAL, "stopped before the API server answered");
}

int session_wait(struct session *s, const bool *done, struct err *err)
{
    if (kube_loop_run(s->loop, err) < 0)
        return -1;
    return *done ? 0 : session_stopped(err);
}

int session_call(struct session *s, const struct kube_request *r, cJSON **ret, struct err *err)
{
    struct answer a = {.loop = s->loop, .wanted = ret != NULL};

    if (s->stopped)
        return session_stopped(err);
    struct kube_request_run *run = kube_request_start(&s->api, r, on_answer, &a, err);
    if (!run)
        return -1;
    int rc = session_wait(s, &a.done, err);
    if (!a.done)
        kube_request_cancel(run);
    if (rc == 0 && a.err.kind) {
        *err = a.err;
        rc = session_explain(s, r, err);
    }
    if (rc == 0 && ret)
        *ret = TAKE(a.object);
    cJSON_Delete(a.object);
    return rc;
}

int session_become(struct session *s, const struct args *a, const char *const *words, struct err *err)
{
    char ns[KUBECTL_PROXY_NS_BYTES];

    snprintf(ns, sizeof(ns), "%s", s->ns);
    session_close(s);
    return kubectl_become(a, ns, words, err);
}

static const char *verb_of(const struct kube_request *r)
{
    static const char *const NAMES[] = {
        [KUBE_GET] = "get",       [KUBE_LIST] = "list",   [KUBE_WATCH] = "watch",  [KUBE_CREATE] = "create",
        [KUBE_UPDATE] = "update", [KUBE_PATCH] = "patch", [KUBE_DELETE] = "delete"};

    return NAMES[r->verb];
}

/* Whether a 403 is that of a permission for the request itself. Quotas, policies and webhooks answer with 403, too, and where --as is
 * not allowed another permission is missing. */
static bool lacks_permission(const struct err *err)
{
    static const char CANNOT[] = "\" cannot ";
    const char *at = err->code == 403 ? strstr(err->msg, CANNOT) : NULL;

    return at && strstr(at, " resource \"") && !sv_starts(sv_from(at + sizeof(CANNOT) - 1), "impersonate");
}

/* The server's own text of a missing permission is long and begins with what the user knows. */
static int explain(const struct session *s, const struct kube_request *r, struct err *err)
{
    const bool job = r->resource == &SESSION_JOBS;
    const struct err was = *err;

    if (lacks_permission(&was))
        return err_set(
            err, was.kind,
            "you lack the permission to %s %s%s%s%s%s in %s%s: ask an administrator for it, or see "
            "`kubectl auth can-i --list%s%s%s`",
            verb_of(r), r->resource->plural, r->resource->group[0] ? "." : "", r->resource->group,
            r->subresource ? "/" : "", r->subresource ? r->subresource : "",
            r->ns                         ? "namespace "
            : r->resource->cluster_scoped ? "the cluster"
                                          : "all namespaces",
            r->ns ? r->ns : "", r->ns ? " -n " : "", r->ns ? r->ns : "", buf_str(&s->options));
    if (was.code == 404 && job && r->name) {
        const bool clear = strstr(was.msg, r->name); /* it is the job that the server does not know */
        return err_set(err, was.kind, "there is no training job \"%.63s\" in namespace %.63s%s%.100s",
                       r->name, r->ns, clear ? "" : ": ", clear ? "" : was.msg);
    }
    if (was.code == 404 && r->ns && strstr(was.msg, "namespaces \""))
        return err_set(err, was.kind,
                       "there is no namespace %.63s: kubectl get namespaces%s lists those there are", r->ns,
                       buf_str(&s->options));
    if (was.code == 404 && job && !r->name)
        return err_set(err, was.kind, "the API server knows no %s: is the operator installed there? (%.120s)",
                       r->resource->kind, was.msg);
    return !was.code || (was.code == 500 && sv_ends(sv_from(was.msg), AWAY)) ? away(s, err) : -1;
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
