/* podcount.c - a whole controller: a ConfigMap "pod-count" in each namespace says how many pods it has.
 *
 * Usage: podcount [NAMESPACE]       (KUBECONFIG, the pod's own account or ~/.kube/config, as kubectl does)
 * Start your own from here: caches of what you read, a queue of keys, one function that compares what is with
 * what should be and sends one request.
 */
#include "common/json.h"
#include "common/log.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/http.h"
#include "kube/workqueue.h"

#include <signal.h>
#include <string.h>

struct app {
    struct loop *loop;
    struct transport api;
    struct log log;
    struct workqueue *keys;      /* namespaces to look at */
    struct cache *pods, *counts; /* grouped by namespace */
    struct loop_timer work;
};

struct attempt {
    struct app *app;
    const char *key;
};

/* --- every change becomes a key ------------------------------------------------------------------------ */

static void *pod_decode(void *ctx, const cJSON *pod, const char **ret_group)
{
    (void)ctx;
    *ret_group = json_str(cJSON_GetObjectItem(pod, "metadata"), "namespace");
    return NULL; /* that it exists is all we need to know */
}

static void *count_decode(void *ctx, const cJSON *map, const char **ret_group)
{
    const char *count = json_str(cJSON_GetObjectItem(map, "data"), "count");

    pod_decode(ctx, map, ret_group);
    return strdup(count ? count : "");
}

static void wake(void *ctx)
{
    struct app *app = ctx;

    loop_timer_set(app->loop, &app->work, loop_now_ms(app->loop));
}

static void changed(void *ctx, const struct store_entry *e)
{
    struct app *app = ctx;

    workqueue_add(app->keys, e->ns, loop_now_ms(app->loop));
    wake(app);
}

static void problem(void *ctx, const struct err *err)
{
    log_line(&((struct app *)ctx)->log, LOG_WARN, err->msg, (const char *[]){NULL});
}

/* --- what is, what should be, one request -------------------------------------------------------------- */

static void finished(void *ctx, struct kube_reply *reply)
{
    struct attempt *a = ctx;
    struct app *app = a->app;
    int64_t now = loop_now_ms(app->loop);

    if (reply->err) {
        problem(app, reply->err);
        workqueue_retry(app->keys, a->key, now, now + reply->status.retry_after_ms);
    } else {
        workqueue_forget(app->keys, a->key);
    }
    workqueue_done(app->keys, a->key, now);
    wake(app);
    free(a);
}

/* True when a request is under way that will end in `finished`. */
static bool reconcile(struct app *app, const char *ns)
{
    const struct store_entry *have = store_get(cache_store(app->counts), ns, "pod-count");
    char count[24], body[128];
    int n = 0;
    struct err err;

    for (const struct store_entry *e = store_group(cache_store(app->pods), ns); e; e = store_group_next(e))
        n++;
    snprintf(count, sizeof(count), "%d", n);
    if (have && strcmp(have->value, count) == 0)
        return false;
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"pod-count\"},\"data\":{\"count\":\"%d\"}}", n);
    struct kube_request r = {.verb = have ? KUBE_PATCH : KUBE_CREATE,
                             .resource = &KUBE_CONFIGMAPS,
                             .ns = ns,
                             .name = have ? "pod-count" : NULL,
                             .body = sv_from(body)};
    struct attempt *a = calloc(1, sizeof(*a));
    if (!a)
        abort();
    *a = (struct attempt){app, ns};
    if (kube_call_start(&app->api, &r, finished, a, &err))
        return true;
    problem(app, &err);
    free(a);
    workqueue_retry(app->keys, ns, loop_now_ms(app->loop), 0);
    return false;
}

static void work(void *ctx)
{
    struct app *app = ctx;
    int64_t now = loop_now_ms(app->loop);

    /* Until both copies are complete we would act on half the truth. */
    if (!cache_stats(app->pods).synced || !cache_stats(app->counts).synced)
        return;
    for (const char *ns = workqueue_take(app->keys, now); ns; ns = workqueue_take(app->keys, now))
        if (!reconcile(app, ns))
            workqueue_done(app->keys, ns, now);
    if (workqueue_next_ms(app->keys) != INT64_MAX)
        loop_timer_set(app->loop, &app->work, workqueue_next_ms(app->keys));
}

/* --- putting it together ------------------------------------------------------------------------------- */

static void on_signal(void *ctx, int signal)
{
    (void)signal;
    loop_stop(ctx);
}

static int run(struct app *app, const char *ns, struct err *err)
{
    cleanup_kube_config struct kube_config config = {0};

    if (kube_config_find(&config, NULL, err) < 0)
        return -1;
    cleanup_loop struct loop *loop = loop_new(clock_system(), err);
    cleanup_http struct http *http =
        loop ? http_new(loop, &config, &(struct http_options){.user_agent = "podcount"}, err) : NULL;
    if (!http || loop_signals(loop, (const int[]){SIGINT, SIGTERM}, 2, on_signal, loop, err) < 0)
        return -1;
    cleanup_workqueue struct workqueue *keys = workqueue_new();
    *app = (struct app){.loop = loop, .api = http_transport(http), .log = app->log, .keys = keys};
    app->work = (struct loop_timer){.fire = work, .ctx = app};
    struct cache_options pods = {.watch = {.resource = KUBE_PODS, .ns = ns},
                                 .decode = pod_decode,
                                 .ctx = app,
                                 .changed = changed,
                                 .synced = wake,
                                 .problem = problem};
    struct cache_options counts = pods;
    counts.watch = (struct watcher_options){
        .resource = KUBE_CONFIGMAPS, .ns = ns, .field_selector = "metadata.name=pod-count", .seed = 1};
    counts.decode = count_decode;
    counts.free_value = free;
    app->pods = cache_new(loop, &app->api, &pods);
    app->counts = cache_new(loop, &app->api, &counts);
    int rc = loop_run(loop, err);
    cache_free(app->pods);
    cache_free(app->counts);
    return rc;
}

int main(int argc, char **argv)
{
    struct app app = {.log = {.fd = 2, .level = LOG_INFO, .clock = clock_system()}};
    struct err err;

    if (run(&app, argc > 1 ? argv[1] : NULL, &err) == 0)
        return 0;
    problem(&app, &err);
    return 1;
}
