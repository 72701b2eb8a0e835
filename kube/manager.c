/* manager.c - build a controller's parts, run the loop, and shut down in order on SIGTERM. */
#include "kube/manager.h"

#include "common/memory.h"
#include "common/random.h"
#include "kube/elector.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDENTITY_BYTES = 96, USER_AGENT_BYTES = 128 };

struct kube_manager {
    struct kube_manager_options o;
    char user_agent[USER_AGENT_BYTES], identity[IDENTITY_BYTES]; /* of the lease's holder */
    struct kube_config *config;
    struct kube_loop *loop;
    struct http *http;
    struct elector *elector;         /* NULL without leader election */
    struct kube_transport transport; /* the elector's; without election http's */
    struct kube_recorder *recorder;
    struct health_page metrics_page, probe_pages[2];
    struct buf page; /* the last /metrics page, written at page_ms */
    int64_t page_ms;
    struct health *metrics, *probes;
    struct kube_reconciler *reconciler;
    bool leads;
    struct kube_loop_timer hard_stop;
    int64_t stop_ms; /* when hard_stop fires */
};

static void report(const struct kube_manager *m, enum kube_manager_news news, const char *detail)
{
    if (m->o.report)
        m->o.report(m->o.ctx, news, detail);
}

/* ---- pages */

static int answer(struct buf *body, int status, const char *text)
{
    buf_puts(body, text, NULL);
    return status;
}

/* Answers as long as the loop runs: an unreachable API server is no reason to restart the process. */
static int on_healthz(void *ctx, struct buf *body)
{
    (void)ctx;
    return answer(body, 200, "ok\n");
}

static int on_readyz(void *ctx, struct buf *body)
{
    const struct kube_manager *m = ctx;

    return kube_reconciler_synced(m->reconciler) ? answer(body, 200, "ok\n")
                                                 : answer(body, 503, "the caches are not complete yet\n");
}

static void write_metrics(const struct kube_manager *m, struct buf *body)
{
    const struct prometheus_sources sources = {m->reconciler, m->http, m->o.lease,
                                               m->elector && elector_is_held(m->elector)};

    prometheus_write(&sources, body);
    if (m->o.metrics)
        m->o.metrics(m->o.ctx, body);
}

/* Writing the page visits every cached object in the only thread, so more frequent requests get the last
 * page. */
static int on_metrics(void *ctx, struct buf *body)
{
    struct kube_manager *m = ctx;
    int64_t now_ms = kube_loop_now_ms(m->loop);

    if (!m->page.len || now_ms >= m->page_ms + KUBE_MANAGER_PAGE_MS) {
        buf_release(&m->page);
        m->page = (struct buf)BUF_INIT(body->max);
        m->page_ms = now_ms;
        write_metrics(m, &m->page);
    }
    buf_append(body, buf_str(&m->page), m->page.len, NULL);
    return m->page.full ? 500 : 200;
}

static int listen_on(struct health **ret, struct kube_loop *l, const char *address,
                     const struct health_page *pages, size_t n, struct err *err)
{
    if (!address || strcmp(address, "0") == 0)
        return 0;
    *ret = health_new(l, address, pages, n, err);
    return *ret ? 0 : -1;
}

static void report_port(const struct kube_manager *m, const struct health *h, const struct health_page *page)
{
    char text[64];

    if (!h)
        return;
    snprintf(text, sizeof(text), "%s on port %d", page->path, health_port(h));
    report(m, KUBE_MANAGER_LISTENS, text);
}

static int listen_all(struct kube_manager *m, struct err *err)
{
    m->metrics_page =
        (struct health_page){"/metrics", on_metrics, m, "text/plain; version=0.0.4; charset=utf-8"};
    m->probe_pages[0] = (struct health_page){"/healthz", on_healthz, m, NULL};
    m->probe_pages[1] = (struct health_page){"/readyz", on_readyz, m, NULL};
    if (listen_on(&m->metrics, m->loop, m->o.metrics_address, &m->metrics_page, 1, err) < 0)
        return -1;
    return listen_on(&m->probes, m->loop, m->o.probe_address, m->probe_pages, ARRAY_LEN(m->probe_pages), err);
}

/* ---- the lease */

static void on_leads(void *ctx, bool leads)
{
    struct kube_manager *m = ctx;

    report(m, leads ? KUBE_MANAGER_LEADS : KUBE_MANAGER_LEADS_NO_MORE, NULL);
    m->leads = leads;
    kube_reconciler_lead(m->reconciler, leads);
}

static void on_other_leads(void *ctx, const char *holder)
{
    report(ctx, KUBE_MANAGER_WAITS, holder);
}

static void on_lease_problem(void *ctx, const struct err *err)
{
    report(ctx, KUBE_MANAGER_LEASE_FAILED, err->msg);
}

const char *kube_manager_namespace(const struct kube_manager *m)
{
    const char *pods_own = getenv("POD_NAMESPACE");

    return pods_own && pods_own[0] ? pods_own : m->config->namespace_name;
}

/* The host name (in a pod: the pod's name) and a random number: a restarted process is another candidate. */
static struct elector *new_elector(struct kube_manager *m, const struct kube_transport *t)
{
    char host[64] = "";
    struct elector_sink sink = {m, on_leads, on_other_leads, on_lease_problem};

    if (!m->o.lease)
        return NULL;
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(m->identity, sizeof(m->identity), "%s_%016llx", host, (unsigned long long)random_seed());
    return elector_new(
        m->loop, t,
        &(struct lease_options){.ns = m->o.lease_ns ? m->o.lease_ns : kube_manager_namespace(m),
                                .name = m->o.lease,
                                .identity = m->identity,
                                .seed = random_seed(),
                                .duration_ms = m->o.lease_ms ? m->o.lease_ms : LEASE_DURATION_MS},
        &sink);
}

/* ---- shutdown, step by step */

static void stop(void *ctx)
{
    struct kube_manager *m = ctx;

    kube_loop_stop(m->loop);
}

static void on_flushed(void *ctx)
{
    struct kube_manager *m = ctx;

    if (m->elector)
        elector_release(m->elector, stop, m);
    else
        stop(m);
}

/* No key is in work any more. Events are writes, so send them before releasing the lease. */
static void on_drained(void *ctx)
{
    struct kube_manager *m = ctx;
    int64_t until_ms = kube_loop_now_ms(m->loop) + KUBE_MANAGER_FLUSH_MS;
    int64_t last_ms = m->stop_ms - KUBE_MANAGER_LEASE_MS;

    kube_recorder_flush(m->recorder, until_ms < last_ms ? until_ms : last_ms, on_flushed, m);
}

static void on_signal(void *ctx, int number)
{
    struct kube_manager *m = ctx;

    report(m, KUBE_MANAGER_STOPS, number == SIGINT ? "SIGINT" : "SIGTERM");
    if (kube_loop_timer_is_set(&m->hard_stop)) /* a second signal does not extend the time */
        return;
    m->stop_ms = kube_loop_now_ms(m->loop) + KUBE_MANAGER_STOP_MS;
    kube_loop_timer_set(m->loop, &m->hard_stop, m->stop_ms);
    kube_reconciler_drain(m->reconciler, on_drained, m);
}

/* ---- construction */

static int set_up(struct kube_manager *m, struct err *err)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT};

    m->loop = kube_loop_new(clock_system(), err);
    if (!m->loop || kube_loop_signals(m->loop, SIGNALS, ARRAY_LEN(SIGNALS), on_signal, m, err) < 0)
        return -1;
    m->http = http_new(m->loop, m->config, m->user_agent, err);
    if (!m->http)
        return -1;
    struct kube_transport plain = http_transport(m->http);
    m->elector = new_elector(m, &plain);
    m->transport = m->elector ? elector_transport(m->elector) : plain;
    m->recorder = kube_recorder_new(m->loop, &m->transport, m->o.name);
    return listen_all(m, err);
}

struct kube_manager *kube_manager_new(struct kube_config *config, const struct kube_manager_options *options,
                                      struct err *err)
{
    struct kube_manager *m = memory_must(calloc(1, sizeof(*m)));

    m->o = *options;
    m->config = config;
    m->leads = !options->lease;
    m->hard_stop = (struct kube_loop_timer){.fire = stop, .ctx = m};
    snprintf(m->user_agent, sizeof(m->user_agent), "%s/%s", options->name, options->version);
    if (set_up(m, err) == 0)
        return m;
    kube_manager_free(m);
    return NULL;
}

void kube_manager_free(struct kube_manager *m)
{
    if (!m)
        return;
    health_free(m->probes);
    health_free(m->metrics);
    buf_release(&m->page);
    kube_recorder_free(m->recorder);
    elector_free(m->elector);
    http_free(m->http);
    if (m->loop)
        kube_loop_timer_cancel(m->loop, &m->hard_stop);
    kube_loop_free(m->loop);
    free(m);
}

struct kube_loop *kube_manager_loop(const struct kube_manager *m)
{
    return m->loop;
}

const struct kube_transport *kube_manager_transport(const struct kube_manager *m)
{
    return &m->transport;
}

struct kube_recorder *kube_manager_recorder(const struct kube_manager *m)
{
    return m->recorder;
}

void kube_manager_add(struct kube_manager *m, struct kube_reconciler *r)
{
    m->reconciler = r;
    kube_reconciler_lead(r, m->leads);
}

/* A process that cannot fill its caches does not acquire the lease. */
static void on_synced(void *ctx)
{
    struct kube_manager *m = ctx;

    elector_start(m->elector);
}

int kube_manager_run(struct kube_manager *m, struct err *err)
{
    report(m, KUBE_MANAGER_STARTED, m->config->server);
    report_port(m, m->metrics, &m->metrics_page);
    report_port(m, m->probes, &m->probe_pages[0]);
    if (m->elector)
        kube_reconciler_await(m->reconciler, on_synced, m);
    return kube_loop_run(m->loop, err);
}
