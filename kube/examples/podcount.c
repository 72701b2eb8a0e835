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
    struct kube_cache *pods, *counts; /* grouped by namespace */
};

/* What we keep of our ConfigMaps: the text of their count. Of pods it is enough that they exist. */
static int count_decode(const cJSON *map, struct kube_cache_item *ret, struct err *err)
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
static void reconcile(void *ctx, struct kube_work *w)
{
    struct app *app = ctx;
    const char *ns = kube_work_key(w);
    const struct kube_store_entry *have = kube_store_get(kube_cache_store(app->counts), ns, "pod-count");
    char count[24], body[128];
    int n = 0;

    for (const struct kube_store_entry *e = kube_store_group(kube_cache_store(app->pods), ns); e;
         e = kube_store_group_next(e))
        n++;
    snprintf(count, sizeof(count), "%d", n);
    if (have && strcmp(have->value, count) == 0) {
        kube_work_done(w);
        return;
    }
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"pod-count\"},\"data\":{\"count\":\"%d\"}}", n);
    kube_work_send(w,
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
    cleanup_kube_manager struct kube_manager *m =
        kube_manager_new(&config, &(struct kube_manager_options){.name = "podcount", .version = "1"}, &err);
    if (!m)
        return failed(&app, &err);
    cleanup_kube_reconciler struct kube_reconciler *r =
        kube_reconciler_new(kube_manager_loop(m), kube_manager_transport(m),
                            &(struct kube_reconciler_options){.name = "podcount",
                                                              .ctx = &app,
                                                              .reconcile = reconcile,
                                                              .problem = problem,
                                                              .seed = kube_manager_seed()});
    app.pods = kube_reconciler_watch(
        r, &(struct kube_reconciler_source){.watch = {.resource = KUBE_PODS, .ns = ns}});
    app.counts = kube_reconciler_watch(
        r, &(struct kube_reconciler_source){
               .watch = {.resource = KUBE_CONFIGMAPS, .ns = ns, .field_selector = "metadata.name=pod-count"},
               .decode = count_decode,
               .free_value = free});
    kube_manager_add(m, r);
    return kube_manager_run(m, &err) == 0 ? 0 : failed(&app, &err);
}
