/* watcher.c - list, watch, resume, list again. */
#include "kube/watcher.h"

#include "common/json.h"
#include "kube/items.h"
#include "kube/lines.h"
#include "kube/status.h"

#include <stdlib.h>
#include <string.h>

/* Lists ask for no resourceVersion, which means a quorum read: after a restart we must not be served an older
 * state than the one we acted upon before. Since 1.31 the server answers such lists from its cache all the same. */
enum state { LIST, LIST_MORE, WATCH };

struct watcher {
    struct arena strings;
    struct watcher_options o;
    struct watcher_sink sink;
    struct watcher_stats stats;
    enum state state;
    struct items items;
    struct lines lines;
    char *resource_version; /* watch from here */
    char *continue_token;
    bool whole_list; /* the next list comes in one piece: a continue token expired */
    bool replacing;  /* replace_begin was called for this list */
    bool advanced;   /* this watch moved resource_version */
    bool broken;     /* feed failed: why and stream_status say how */
    struct err why;
    struct kube_status stream_status;
    int resumes;  /* watches that failed in a row */
    int failures; /* requests that failed since the last quiet time */
    int64_t failed_ms;
    int64_t begin_ms;
    uint64_t random;
};

struct watcher *watcher_new(const struct watcher_options *options, const struct watcher_sink *sink)
{
    struct watcher *w = calloc(1, sizeof(*w));

    if (!w)
        abort();
    w->o = *options;
    w->o.ns = options->ns ? arena_strdup(&w->strings, options->ns) : NULL;
    w->o.label_selector = options->label_selector ? arena_strdup(&w->strings, options->label_selector) : NULL;
    w->o.field_selector = options->field_selector ? arena_strdup(&w->strings, options->field_selector) : NULL;
    w->sink = *sink;
    w->random = options->seed;
    items_init(&w->items, WATCHER_OBJECT_MAX_BYTES);
    lines_init(&w->lines, WATCHER_OBJECT_MAX_BYTES);
    return w;
}

void watcher_free(struct watcher *w)
{
    if (!w)
        return;
    items_release(&w->items);
    lines_release(&w->lines);
    free(w->resource_version);
    free(w->continue_token);
    arena_release(&w->strings);
    free(w);
}

/* splitmix64 */
static uint64_t next_random(struct watcher *w)
{
    uint64_t z = (w->random += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = text ? strdup(text) : NULL;
    if (text && !*to)
        abort();
}

int watcher_request(struct watcher *w, struct arena *a, struct http_request *out, struct err *err)
{
    struct kube_request r = {
        .verb = w->state == WATCH ? KUBE_WATCH : KUBE_LIST,
        .resource = &w->o.resource,
        .ns = w->o.ns,
        .label_selector = w->o.label_selector,
        .field_selector = w->o.field_selector,
    };

    if (w->state == WATCH) {
        r.resource_version = w->resource_version;
        r.bookmarks = true;
        r.timeout_s = 300 + (int)(next_random(w) % 300);
    } else {
        r.limit = w->whole_list ? 0 : WATCHER_PAGE_ITEMS;
        r.continue_token = w->state == LIST_MORE ? w->continue_token : NULL;
    }
    if (kube_request_build(&r, a, out, err) < 0)
        return -1;
    out->timeout_ms = 0;
    out->idle_timeout_ms = w->state == WATCH ? WATCHER_IDLE_MS : TRANSPORT_TIMEOUT_MS;
    return 0;
}

void watcher_begin(struct watcher *w, int64_t now_ms)
{
    w->begin_ms = now_ms;
    w->broken = false;
    w->advanced = false;
    w->stream_status = (struct kube_status){.retry_after_ms = -1};
    items_reset(&w->items);
    lines_reset(&w->lines);
    if (w->state == WATCH)
        w->stats.watches++;
    else if (w->state == LIST)
        w->stats.lists++;
}

/* What every object must have for the cache to hold it. */
static int check_object(const struct watcher *w, const cJSON *object, struct err *err)
{
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
    const char *kind = json_str(object, "kind");

    if (kind && strcmp(kind, w->o.resource.kind) != 0)
        return err_set(err, ERR_INVALID, "expected a %s, got a %.60s", w->o.resource.kind, kind);
    if (!json_str(meta, "name") || !json_str(meta, "uid") || !json_str(meta, "resourceVersion"))
        return err_set(err, ERR_INVALID, "a %s without metadata.name, uid or resourceVersion",
                       w->o.resource.kind);
    return 0;
}

static void begin_replace(struct watcher *w)
{
    if (!w->replacing)
        w->sink.replace_begin(w->sink.ctx);
    w->replacing = true;
}

static int on_item(void *ctx, struct sv text, struct err *err)
{
    struct watcher *w = ctx;
    cleanup_json cJSON *object = json_parse(text.p, text.len, err);

    if (!object || check_object(w, object, err) < 0)
        return err_wrap(err, "list");
    begin_replace(w);
    w->stats.events++;
    w->sink.upsert(w->sink.ctx, object);
    return 0;
}

static int on_error_event(struct watcher *w, const cJSON *object, struct err *err)
{
    return kube_status_object(object, &w->stream_status, err);
}

static int on_event(struct watcher *w, const char *type, const cJSON *object, struct err *err)
{
    bool bookmark = strcmp(type, "BOOKMARK") == 0;
    bool removed = strcmp(type, "DELETED") == 0;
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");

    if (!bookmark && !removed && strcmp(type, "ADDED") != 0 && strcmp(type, "MODIFIED") != 0)
        return err_set(err, ERR_INVALID, "unknown event type \"%.40s\"", type);
    if (!bookmark && check_object(w, object, err) < 0)
        return -1;
    if (!version)
        return err_set(err, ERR_INVALID, "a bookmark without metadata.resourceVersion");
    w->advanced = w->advanced || strcmp(version, w->resource_version) != 0;
    set_text(&w->resource_version, version);
    if (bookmark)
        return 0;
    w->stats.events++;
    if (removed)
        w->sink.removed(w->sink.ctx, object);
    else
        w->sink.upsert(w->sink.ctx, object);
    return 0;
}

static int on_line(void *ctx, struct sv line, struct err *err)
{
    struct watcher *w = ctx;
    cleanup_json cJSON *event = json_parse(line.p, line.len, err);

    if (!event)
        return err_wrap(err, "watch event");
    const char *type = json_str(event, "type");
    const cJSON *object = json_find(event, (const char *[]){"object", NULL});
    if (!type || !cJSON_IsObject(object))
        return err_set(err, ERR_INVALID, "watch event: expected \"type\" and \"object\"");
    int rc = strcmp(type, "ERROR") == 0 ? on_error_event(w, object, err) : on_event(w, type, object, err);
    return rc < 0 ? err_wrap(err, "watch event") : 0;
}

int watcher_feed(struct watcher *w, struct sv bytes, int64_t now_ms)
{
    int rc = w->state == WATCH ? lines_feed(&w->lines, bytes, on_line, w, &w->why)
                               : items_feed(&w->items, bytes, on_item, w, &w->why);

    w->broken = rc < 0;
    if (!w->broken)
        w->stats.progress_ms = now_ms;
    return rc;
}

static int64_t back_off(struct watcher *w, int64_t now_ms, int64_t retry_after_ms)
{
    if (now_ms - w->failed_ms >= WATCHER_QUIET_MS)
        w->failures = 0;
    int64_t delay = WATCHER_BACKOFF_MIN_MS;
    for (int i = 0; i < w->failures && delay < WATCHER_BACKOFF_MAX_MS; i++)
        delay *= 2;
    if (delay > WATCHER_BACKOFF_MAX_MS)
        delay = WATCHER_BACKOFF_MAX_MS;
    delay += (int64_t)(next_random(w) % (uint64_t)delay);
    w->failures++;
    w->failed_ms = now_ms;
    return delay > retry_after_ms ? delay : retry_after_ms;
}

static void list_again(struct watcher *w)
{
    w->state = LIST;
    w->replacing = false;
    w->resumes = 0;
    set_text(&w->continue_token, NULL);
}

/* A list or watch failed: where to go on, and when. */
static int64_t fail(struct watcher *w, int64_t now_ms, const struct err *err,
                    const struct kube_status *status)
{
    bool expired = status->reason == KUBE_REASON_EXPIRED;
    bool first = w->failures == 0 || now_ms - w->failed_ms >= WATCHER_QUIET_MS;
    bool resume = w->state == WATCH && !expired && err->kind != ERR_INVALID && err->kind != ERR_NOT_FOUND &&
                  ++w->resumes < WATCHER_RESUMES;

    w->stats.failures++;
    w->sink.problem(w->sink.ctx, err);
    if (w->state == LIST_MORE && expired)
        w->whole_list = true;
    if (!resume)
        list_again(w);
    int64_t delay = back_off(w, now_ms, status->retry_after_ms);
    /* Expiry is part of normal life; only in a row does it call for patience. */
    return expired && first ? 0 : delay;
}

static int64_t list_ended(struct watcher *w, int64_t now_ms)
{
    static const struct kube_status none = {.retry_after_ms = -1};
    struct err err;
    cleanup_json cJSON *list = items_finish(&w->items, &err);
    const char *kind = json_str(list, "kind");
    const cJSON *meta = json_find(list, (const char *[]){"metadata", NULL});
    const char *version = json_str(meta, "resourceVersion");
    const char *more = json_str(meta, "continue");
    size_t kind_len = strlen(w->o.resource.kind);

    items_reset(&w->items);
    if (!list)
        return fail(w, now_ms, &err, &none);
    if (!kind || strncmp(kind, w->o.resource.kind, kind_len) != 0 || strcmp(kind + kind_len, "List") != 0 ||
        !version || !version[0]) {
        err_set(&err, ERR_INVALID, "list: expected a %sList with metadata.resourceVersion, got \"%.60s\"",
                w->o.resource.kind, kind ? kind : "no kind");
        return fail(w, now_ms, &err, &none);
    }
    begin_replace(w);
    set_text(&w->resource_version, version);
    w->stats.progress_ms = now_ms;
    if (more && more[0]) {
        w->state = LIST_MORE;
        set_text(&w->continue_token, more);
        return 0;
    }
    list_again(w);
    w->state = WATCH;
    w->whole_list = false;
    w->stats.synced = true;
    w->sink.replace_end(w->sink.ctx);
    return 0;
}

static int64_t watch_ended(struct watcher *w, int64_t now_ms)
{
    static const struct kube_status none = {.retry_after_ms = -1};
    struct err err;

    if (w->advanced || now_ms - w->begin_ms >= WATCHER_SHORT_MS) {
        w->resumes = 0;
        return 0;
    }
    err_set(&err, ERR_TRANSIENT, "watch: ended after %lld ms without an event",
            (long long)(now_ms - w->begin_ms));
    return fail(w, now_ms, &err, &none);
}

int64_t watcher_end(struct watcher *w, int64_t now_ms, const struct http_response *r, const struct err *err)
{
    struct kube_status status = {.retry_after_ms = -1};
    struct err why;

    if (r)
        w->stats.progress_ms = now_ms; /* an error is an answer, too */
    if (w->advanced)
        w->resumes = 0;
    if (w->broken)
        status = w->stream_status;
    if (w->broken)
        return fail(w, now_ms, &w->why, &status);
    if (err)
        return fail(w, now_ms, err, &status);
    if (kube_status_check(r, &status, &why) < 0) {
        err_wrap(&why, "%s %s", w->state == WATCH ? "watch" : "list", w->o.resource.plural);
        return fail(w, now_ms, &why, &status);
    }
    return w->state == WATCH ? watch_ended(w, now_ms) : list_ended(w, now_ms);
}

struct watcher_stats watcher_stats(const struct watcher *w)
{
    return w->stats;
}
