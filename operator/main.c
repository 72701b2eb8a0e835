/* main.c - ptj-operator: put the parts together, run the loop, leave when told. */
#include "kube/elector.h"
#include "kube/health.h"
#include "kube/prometheus.h"
#include "operator/metrics.h"
#include "operator/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LEASE_NAME "torchkeeper-operator"

enum { DRAIN_MS = 4000, NO_PROGRESS_MS = 300000, IDENTITY_BYTES = 96 };

struct program {
    struct options options;
    struct log log;
    struct loop *loop;
    struct elector *elector; /* NULL without leader election */
    struct controller *controller;
    struct http *http;
    struct recorder *recorder;
    struct loop_timer hard_stop;
    int64_t started_ms;
};

static int on_healthz(void *ctx, struct buf *body)
{
    struct program *p = ctx;
    struct err err;
    int64_t heard_ms = reconciler_progress_ms(controller_reconciler(p->controller));
    if (heard_ms < p->started_ms)
        heard_ms = p->started_ms;
    bool ok = loop_now_ms(p->loop) - heard_ms < NO_PROGRESS_MS;

    (void)buf_puts(body, ok ? "ok\n" : "a watch has heard nothing of the API server for 5 minutes\n", &err);
    return ok ? 200 : 500;
}

static int on_readyz(void *ctx, struct buf *body)
{
    struct program *p = ctx;
    struct err err;
    bool ok = reconciler_synced(controller_reconciler(p->controller));

    (void)buf_puts(body, ok ? "ok\n" : "the caches are not complete yet\n", &err);
    return ok ? 200 : 503;
}

static int on_metrics(void *ctx, struct buf *body)
{
    struct program *p = ctx;
    const struct reconciler *reconciler = controller_reconciler(p->controller);
    const struct prometheus_sources common = {&reconciler, 1, p->http, p->elector ? LEASE_NAME : NULL,
                                              p->elector && elector_is_held(p->elector)};
    struct err err;

    if (prometheus_write(&common, body, &err) < 0 ||
        metrics_write(&(struct metrics_sources){p->controller, p->recorder, PTJ_VERSION}, body, &err) < 0)
        return 500;
    return 200;
}

static void stop(void *ctx)
{
    struct program *p = ctx;

    loop_stop(p->loop);
}

/* Nothing of ours is under way any more: the next one may begin. */
static void on_drained(void *ctx)
{
    struct program *p = ctx;

    if (p->elector)
        elector_let_go(p->elector, stop, p);
    else
        stop(p);
}

static void on_signal(void *ctx, int number)
{
    struct program *p = ctx;

    log_line(&p->log, LOG_INFO, "stopping",
             (const char *[]){"signal", number == SIGINT ? "SIGINT" : "SIGTERM", NULL});
    if (!loop_timer_is_set(&p->hard_stop)) /* a second signal buys no more time */
        loop_timer_set(p->loop, &p->hard_stop, loop_now_ms(p->loop) + DRAIN_MS);
    reconciler_drain(controller_reconciler(p->controller), on_drained, p);
}

static void on_leads(void *ctx, bool leads)
{
    struct program *p = ctx;

    log_line(&p->log, leads ? LOG_INFO : LOG_WARN, leads ? "leading" : "leading no more", NULL);
    reconciler_lead(controller_reconciler(p->controller), leads);
}

static void on_other_leads(void *ctx, const char *holder)
{
    struct program *p = ctx;

    log_line(&p->log, LOG_INFO, "waiting for the lease", (const char *[]){"holder", holder, NULL});
}

static void on_lease_problem(void *ctx, const struct err *err)
{
    struct program *p = ctx;

    log_line(&p->log, LOG_WARN, "lease request failed", (const char *[]){"error", err->msg, NULL});
}

static int listen_on(struct health **ret, struct program *p, const char *address,
                     const struct health_page *pages, size_t n, struct err *err)
{
    if (strcmp(address, "0") == 0)
        return 0;
    *ret = health_new(p->loop, address, pages, n, err);
    return *ret ? 0 : -1;
}

static uint64_t random_seed(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = (uint64_t)getpid();
    return seed;
}

static const char *lease_namespace(const struct options *o, const struct kube_config *config)
{
    const char *pods_own = getenv("POD_NAMESPACE");

    if (o->leader_elect_ns)
        return o->leader_elect_ns;
    return pods_own && pods_own[0] ? pods_own : config->namespace_name;
}

/* The host's name (a pod's is its own) and a number: a process that starts again is someone else. */
static struct elector *new_elector(struct program *p, const struct kube_config *config,
                                   const struct transport *t)
{
    char host[64] = "";
    char identity[IDENTITY_BYTES];
    struct elector_sink sink = {p, on_leads, on_other_leads, on_lease_problem};

    if (!p->options.leader_elect)
        return NULL;
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(identity, sizeof(identity), "%s_%016llx", host, (unsigned long long)random_seed());
    return elector_new(p->loop, t,
                       &(struct lease_options){.ns = lease_namespace(&p->options, config),
                                               .name = LEASE_NAME,
                                               .identity = identity,
                                               .seed = random_seed()},
                       &sink);
}

static int serve(struct program *p, struct kube_config *config, struct err *err)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT};
    const struct health_page metrics[] = {
        {"/metrics", on_metrics, p, "text/plain; version=0.0.4; charset=utf-8"}};
    const struct health_page probes[] = {{"/healthz", on_healthz, p, NULL}, {"/readyz", on_readyz, p, NULL}};
    const struct http_options http_options = {"ptj-operator/" PTJ_VERSION, p->options.qps, p->options.burst};
    const struct controller_options options = {p->options.ns, p->options.tensorboard_image, random_seed(),
                                               .waits = p->options.leader_elect};
    p->hard_stop = (struct loop_timer){.fire = stop, .ctx = p};
    cleanup_loop struct loop *loop = loop_new(clock_system(), err);

    if (!loop || loop_signals(loop, SIGNALS, ARRAY_LEN(SIGNALS), on_signal, p, err) < 0)
        return -1;
    p->loop = loop;
    p->started_ms = loop_now_ms(loop);
    cleanup_http struct http *http = http_new(loop, config, &http_options, err);
    if (!http)
        return -1;
    struct transport transport = http_transport(http);
    cleanup_elector struct elector *elector = new_elector(p, config, &transport);
    p->elector = elector;
    if (elector)
        transport = elector_transport(elector);
    cleanup_recorder struct recorder *recorder = recorder_new(loop, &transport, "ptj-operator", NULL);
    cleanup_controller struct controller *controller =
        controller_new(loop, &transport, recorder, &p->log, &options);
    p->controller = controller;
    p->http = http;
    p->recorder = recorder;
    cleanup_health struct health *metrics_listener = NULL;
    cleanup_health struct health *probe_listener = NULL;
    if (listen_on(&metrics_listener, p, p->options.metrics_address, metrics, 1, err) < 0 ||
        listen_on(&probe_listener, p, p->options.health_address, probes, 2, err) < 0)
        return -1;
    log_line(&p->log, LOG_INFO, "started",
             (const char *[]){"version", PTJ_VERSION, "server", config->server, "namespace",
                              p->options.ns ? p->options.ns : "(all)", NULL});
    if (elector)
        elector_start(elector);
    int rc = loop_run(loop, err);
    loop_timer_cancel(loop, &p->hard_stop);
    return rc;
}

int main(int argc, char **argv)
{
    struct program p = {.log = {STDERR_FILENO, LOG_INFO, clock_system()}};
    cleanup_kube_config struct kube_config config = {0};
    struct err err;

    if (options_parse(&p.options, argc, argv, &err) < 0) {
        fprintf(stderr, "ptj-operator: %s\n", err.msg);
        return 2;
    }
    if (p.options.help || p.options.version) {
        fputs(p.options.help ? OPTIONS_HELP : "ptj-operator " PTJ_VERSION "\n", stdout);
        return 0;
    }
    p.log.level = p.options.log_level;
    if (kube_config_find(&config, p.options.kubeconfig, &err) < 0 || serve(&p, &config, &err) < 0) {
        log_line(&p.log, LOG_ERROR, "cannot run", (const char *[]){"error", err.msg, NULL});
        return 1;
    }
    log_line(&p.log, LOG_INFO, "stopped", NULL);
    return 0;
}
