/* podcount.c - a whole controller: a ConfigMap "pod-count" in each namespace says how many pods it has.
 *
 * Usage: podcount [NAMESPACE]       (KUBECONFIG, the pod's own account or ~/.kube/config, as kubectl does)
 * Start your own from here: caches of what you read, a queue of keys, one function that compares what is with
 * what should be and sends one request.
 */
#include "common/json.h"
#include "common/log.h"
#include "kube/manager.h"

#include <stdlib.h>
#include <string.h>

struct app {
    struct log log;
    struct cache *pods, *counts; /* grouped by namespace */
};

/* What we keep of our ConfigMaps: the text of their count. Of pods it is enough that they exist. */
static int count_decode(const cJSON *map, struct cache_item *ret, struct err *err)
{
    const char *count = json_str(cJSON_GetObjectItem(map, "data"), "count");

    (void)err;
    ret->value = strdup(count ? count : "");
    return 0;
}

static void problem(void *ctx, const char *what, const struct err *err)
{
    log_line(&((struct app *)ctx)->log, LOG_WARN, err->msg, (const char *[]){"about", what, NULL});
}

static int failed(struct app *app, const struct err *err)
{
    problem(app, "podcount", err);
    return 1;
}

/* What is, what should be, one request. The key is a namespace. */
static void reconcile(void *ctx, struct work *w)
{
    struct app *app = ctx;
    const char *ns = work_key(w);
    const struct store_entry *have = store_get(cache_store(app->counts), ns, "pod-count");
    char count[24], body[128];
    int n = 0;

    for (const struct store_entry *e = store_group(cache_store(app->pods), ns); e; e = store_group_next(e))
        n++;
    snprintf(count, sizeof(count), "%d", n);
    if (have && strcmp(have->value, count) == 0) {
        work_done(w);
        return;
    }
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"pod-count\"},\"data\":{\"count\":\"%d\"}}", n);
    work_send(w,
              &(struct kube_request){.verb = have ? KUBE_PATCH : KUBE_CREATE,
                                     .resource = &KUBE_CONFIGMAPS,
                                     .ns = ns,
                                     .name = have ? "pod-count" : NULL,
                                     .body = sv_from(body)},
              NULL); /* that it worked ends the key; that it failed brings it back later */
}

int main(int argc, char **argv)
{
    const char *ns = argc > 1 ? argv[1] : NULL;
    struct app app = {.log = {.fd = 2, .level = LOG_INFO, .clock = clock_system()}};
    cleanup_kube_config struct kube_config config = {0};
    struct err err;

    if (kube_config_find(&config, NULL, &err) < 0)
        return failed(&app, &err);
    cleanup_manager struct manager *m =
        manager_new(&config, &(struct manager_options){.name = "podcount", .version = "1"}, &err);
    if (!m)
        return failed(&app, &err);
    cleanup_reconciler struct reconciler *r =
        reconciler_new(manager_loop(m), manager_transport(m),
                       &(struct reconciler_options){.name = "podcount",
                                                    .ctx = &app,
                                                    .reconcile = reconcile,
                                                    .problem = problem,
                                                    .seed = manager_seed()});
    app.pods = reconciler_watch(r, &(struct reconciler_source){.watch = {.resource = KUBE_PODS, .ns = ns}});
    app.counts = reconciler_watch(
        r, &(struct reconciler_source){
               .watch = {.resource = KUBE_CONFIGMAPS, .ns = ns, .field_selector = "metadata.name=pod-count"},
               .decode = count_decode,
               .free_value = free});
    manager_add(m, r);
    return manager_run(m, &err) == 0 ? 0 : failed(&app, &err);
}
