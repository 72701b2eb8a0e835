/* podcount.c - an example of a complete controller: it keeps a ConfigMap "pod-count" in each namespace with
 * the number of the namespace's pods.
 *
 * Usage: podcount [NAMESPACE [SERVER]]       (default: all namespaces, and the API server of the pod that it runs in)
 *
 * A template for your own: caches of the objects you read, a queue of keys, one function that compares the actual
 * state with the desired state and sends one request.
 */
#include "common/random.h"
#include "kube/manager.h"
#include "kube/reconciler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct app {
    struct kube_cache *pods, *counts; /* grouped by namespace */
};

/* Of our ConfigMaps we store the text of the count. Of pods we store only the names. */
static int count_decode(const cJSON *map, const struct err *unreadable, struct kube_store_entry *ret,
                        struct err *err)
{
    const char *count = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(map, "data"), "count"));

    (void)err;
    if (unreadable)
        return -1;
    ret->value = strdup(count ? count : "");
    return 0;
}

static void problem(void *ctx, const char *what, const struct err *err)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", what, err->msg);
}

static int failed(const struct err *err)
{
    problem(NULL, "podcount", err);
    return 1;
}

/* Compare actual and desired state, then send one request. The key is a namespace. */
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
                                          .body = sv_from(body)}); /* a failure queues the key again, later */
}

static struct kube_reconciler *podcount_new(struct kube_loop *loop, const struct kube_transport *transport,
                                            struct app *app, const char *ns)
{
    struct kube_reconciler_options options = {
        .name = "podcount", .ctx = app, .reconcile = reconcile, .problem = problem};
    struct kube_reconciler_source pods = {.watch = {.resource = KUBE_PODS, .ns = ns}};
    struct kube_reconciler_source counts = {
        .watch = {.resource = KUBE_CONFIGMAPS, .ns = ns}, .decode = count_decode, .free_value = free};

    options.seed = random_seed();
    counts.watch.field_selector = "metadata.name=pod-count";
    struct kube_reconciler *r = kube_reconciler_new(loop, transport, &options);
    app->pods = kube_reconciler_watch(r, &pods);
    app->counts = kube_reconciler_watch(r, &counts);
    return r;
}

int main(int argc, char **argv)
{
    struct app app = {0};
    cleanup_kube_config struct kube_config config = {0};
    struct err err;

    if (kube_config_find(&config, &(struct kube_config_given){.server = argc > 2 ? argv[2] : NULL}, &err) < 0)
        return failed(&err);
    cleanup_kube_manager struct kube_manager *m =
        kube_manager_new(&config, &(struct kube_manager_options){.name = "podcount", .version = "1"}, &err);
    if (!m)
        return failed(&err);
    cleanup_kube_reconciler struct kube_reconciler *r = podcount_new(
        kube_manager_loop(m), kube_manager_transport(m), &app, argc > 1 && argv[1][0] ? argv[1] : NULL);
    kube_manager_add(m, r);
    return kube_manager_run(m, &err) == 0 ? 0 : failed(&err);
}
