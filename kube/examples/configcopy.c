/* configcopy.c - an example of a controller with a custom resource: a ConfigCopy keeps a ConfigMap in another namespace.
 *
 * Usage: configcopy      (cluster-wide; KUBECONFIG, the pod's own account or ~/.kube/config, as kubectl does)
 * configcopy.yaml is its CustomResourceDefinition. An owner reference does not reach into another namespace, so a finalizer
 * sees to it that the ConfigMap goes with its ConfigCopy.
 */
#include <kube/kube.h>

#include <stdio.h>
#include <stdlib.h>

#define GROUP "examples.torchkeeper.dev"
#define FINALIZER GROUP "/copy"

static const struct kube_resource CONFIGCOPIES = {GROUP, "v1", "configcopies", "ConfigCopy", false};

struct app {
    struct kube_cache *copies, *maps; /* of both the objects as they are */
};

static const cJSON *member(const cJSON *object, const char *part, const char *key)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(object, part), key);
}

static void object_free(void *object)
{
    cJSON_Delete(object);
}

/* By default an object's group is the key of its changes: here its name. */
static int decode(const cJSON *object, struct kube_cache_item *ret, struct err *err)
{
    (void)err;
    ret->value = cJSON_Duplicate(object, true);
    ret->group = cJSON_GetStringValue(member(ret->value, "metadata", "name"));
    return KUBE_CACHE_KEEP;
}

/* A change of a ConfigMap concerns the ConfigCopy of its name, in the namespace that its label says. */
static void map_changed(struct kube_reconciler *r, const struct kube_store_entry *e)
{
    const char *ns =
        cJSON_GetStringValue(cJSON_GetObjectItem(member(e->value, "metadata", "labels"), FINALIZER));

    kube_reconciler_add(r, ns ? ns : "", e->name);
}

static void problem(void *ctx, const char *what, const struct err *err)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", what, err->msg);
}

static void patch(struct kube_work *w, const char *subresource, const char *body)
{
    kube_work_send(w,
                   &(struct kube_request){.verb = KUBE_PATCH,
                                          .resource = &CONFIGCOPIES,
                                          .ns = kube_work_ns(w),
                                          .name = kube_work_key(w),
                                          .subresource = subresource,
                                          .body = kube_text(body)},
                   NULL);
}

/* Once the ConfigMap is gone, the ConfigCopy may go. */
static void on_map_deleted(void *ctx, struct kube_work *w, struct kube_reply *reply)
{
    const cJSON *copy = kube_cache_get(((struct app *)ctx)->copies, kube_work_ns(w), kube_work_key(w));
    char *body = kube_object_finalizer_patch(copy, FINALIZER, false);

    if (reply->err && reply->err->kind != ERR_NOT_FOUND)
        kube_work_retry(w, reply->status.retry_after_ms);
    else if (body)
        patch(w, NULL, body);
    else
        kube_work_done(w);
    free(body);
}

static void reconcile(void *ctx, struct kube_work *w)
{
    struct app *app = ctx;
    const char *ns = kube_work_ns(w), *name = kube_work_key(w);
    const cJSON *copy = kube_cache_get(app->copies, ns, name);
    const cJSON *text = member(copy, "spec", "text"), *told = member(copy, "status", "text");
    struct kube_request map = {.resource = &KUBE_CONFIGMAPS, .name = name};
    char *body = NULL, *quoted = text ? cJSON_PrintUnformatted(text) : NULL;

    map.ns = cJSON_GetStringValue(member(copy, "spec", "namespace"));
    const cJSON *have = member(copy ? kube_cache_get(app->maps, map.ns, name) : NULL, "data", "text");
    if (!copy || (kube_object_is_deleting(copy) && !kube_object_has_finalizer(copy, FINALIZER))) {
        kube_work_done(w);
    } else if (kube_object_is_deleting(copy)) {
        map.verb = KUBE_DELETE;
        kube_work_send(w, &map, on_map_deleted);
    } else if ((body = kube_object_finalizer_patch(copy, FINALIZER, true))) {
        patch(w, NULL, body);
    } else if (!cJSON_Compare(have, text, true)) {
        if (asprintf(&body,
                     "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"%s\":\"%s\"}},\"data\":{\"text\":%s}}",
                     name, FINALIZER, ns, quoted) < 0)
            abort();
        map.body = kube_text(body);
        kube_work_apply(w, &map, NULL);
    } else if (!cJSON_Compare(told, text, true)) {
        if (asprintf(&body, "{\"status\":{\"text\":%s}}", quoted) < 0)
            abort();
        patch(w, "status", body);
    } else {
        kube_work_done(w);
    }
    free(quoted);
    free(body);
}

static int failed(const struct err *err)
{
    problem(NULL, "configcopy", err);
    return 1;
}

int main(void)
{
    struct app app = {0};
    cleanup_kube_config struct kube_config config = {0};
    struct err err;

    if (kube_config_find(&config, NULL, NULL, &err) < 0)
        return failed(&err);
    cleanup_kube_manager struct kube_manager *m =
        kube_manager_new(&config, &(struct kube_manager_options){.name = "configcopy", .version = "1"}, &err);
    if (!m)
        return failed(&err);
    struct kube_reconciler_options options = {.name = "configcopy", .ctx = &app, .seed = kube_manager_seed()};
    options.reconcile = reconcile;
    options.problem = problem;
    cleanup_kube_reconciler struct kube_reconciler *r =
        kube_reconciler_new(kube_manager_loop(m), kube_manager_transport(m), &options);
    struct kube_reconciler_source source = {.decode = decode, .free_value = object_free};
    source.watch.resource = CONFIGCOPIES;
    app.copies = kube_reconciler_watch(r, &source);
    source.watch = (struct kube_watcher_options){.resource = KUBE_CONFIGMAPS, .label_selector = FINALIZER};
    source.map = map_changed;
    app.maps = kube_reconciler_watch(r, &source);
    kube_manager_add(m, r);
    return kube_manager_run(m, &err) == 0 ? 0 : failed(&err);
}
