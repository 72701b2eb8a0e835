/* main.c - ptj-operator: read the options, open the log, run the controller under a manager. */
#include "common/hash.h"
#include "common/json.h"
#include "common/random.h"
#include "kube/manager.h"
#include "operator/metrics.h"
#include "operator/options.h"

#include <stdio.h>
#include <unistd.h>

struct program {
    struct options options;
    struct log log;
    struct kube_manager *manager;
    struct controller *controller;
};

static void on_news(void *ctx, enum kube_manager_news news, const char *detail)
{
    static const struct {
        enum log_level level;
        const char *msg, *field;
    } LINES[] = {
        [KUBE_MANAGER_STARTED] = {LOG_INFO, "started", "server"},
        [KUBE_MANAGER_LISTENS] = {LOG_INFO, "listening", "page"},
        [KUBE_MANAGER_LEADS] = {LOG_INFO, "leading", "detail"},
        [KUBE_MANAGER_LEADS_NO_MORE] = {LOG_WARN, "leading no more", "detail"},
        [KUBE_MANAGER_WAITS] = {LOG_INFO, "waiting for the lease", "holder"},
        [KUBE_MANAGER_LEASE_FAILED] = {LOG_WARN, "lease request failed", "error"},
        [KUBE_MANAGER_STOPS] = {LOG_INFO, "stopping", "signal"},
    };
    const struct program *p = ctx;
    bool started = news == KUBE_MANAGER_STARTED;
    const char *ns = p->options.controller.ns ? p->options.controller.ns : "(all)";

    log_line(&p->log, LINES[news].level, LINES[news].msg,
             (const char *[]){LINES[news].field, detail, "version", started ? PTJ_VERSION : NULL, "namespace",
                              started ? ns : NULL, NULL});
}

static void on_metrics(void *ctx, struct buf *out)
{
    const struct program *p = ctx;

    metrics_write(&(struct metrics_sources){p->controller, kube_manager_recorder(p->manager), PTJ_VERSION},
                  out);
}

static int serve(struct program *p, struct kube_config *config, struct err *err)
{
    struct controller_options *options = &p->options.controller;

    p->options.manager.version = PTJ_VERSION;
    p->options.manager.ctx = p;
    p->options.manager.report = on_news;
    p->options.manager.metrics = on_metrics;
    cleanup_kube_manager struct kube_manager *m = kube_manager_new(config, &p->options.manager, err);
    if (!m)
        return -1;
    options->guards.operator_ns = kube_manager_namespace(m);
    options->seed = random_seed();
    cleanup_controller struct controller *c = controller_new(kube_manager_loop(m), kube_manager_transport(m),
                                                             kube_manager_recorder(m), &p->log, options);
    p->manager = m;
    p->controller = c;
    kube_manager_add(m, controller_reconciler(c));
    return kube_manager_run(m, err);
}

int main(int argc, char **argv)
{
    struct program p = {.log = {STDERR_FILENO, LOG_INFO, clock_system()}};
    cleanup_kube_config struct kube_config config = {0};
    struct err err;

    json_memory_must();
    hash_seed((uint64_t[]){random_seed(), random_seed()});
    if (options_parse(&p.options, argc, argv, &err) < 0) {
        fprintf(stderr, "ptj-operator: %s\n", err.msg);
        return 2;
    }
    if (p.options.help) {
        options_help(stdout);
        return 0;
    }
    if (p.options.version) {
        puts("ptj-operator (Torchkeeper) " PTJ_VERSION);
        return 0;
    }
    p.log.level = p.options.log_level;
    if (kube_config_find(&config, &p.options.api, &err) < 0 || serve(&p, &config, &err) < 0) {
        log_line(&p.log, LOG_ERROR, "cannot run", (const char *[]){"error", err.msg, NULL});
        return 1;
    }
    log_line(&p.log, LOG_INFO, "stopped", NULL);
    return 0;
}
