/* watcher.c - the list-and-watch state machine: list, watch, resume, list again. */
#include "kube/watcher.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/random.h"
#include "kube/apistatus.h"
#include "kube/items.h"
#include "kube/request.h"
#include "kube/skim.h"
#include "kube/version.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- check what the server sends for a collection: watch events, objects, list metadata, bookmarks */

enum watch_event_kind {
    WATCH_UPSERT,
    WATCH_REMOVED,
    WATCH_BOOKMARK,
    WATCH_ERROR, /* the object is a Status */
};

struct watch_event {
    enum watch_event_kind kind;
    const cJSON *object;
    const char *version; /* may be NULL for WATCH_ERROR */
};

struct list_meta {
    const char *version;
    const char *more; /* continue token; NULL: this was the last page */
};

/* Check the kind, which an item of a list may lack, and that name, uid and resourceVersion are set, as a
 * cache needs them. */
static int validate_object(const struct kube_resource *r, const cJSON *object, struct err *err)
{
    const char *kind = json_str(object, "kind");

    if (kind && strcmp(kind, r->kind) != 0)
        return err_set(err, ERR_INVALID, "expected a %s, got a %.60s", r->kind, kind);
    if (!skim_has_names(object))
        return err_set(err, ERR_INVALID, "a %s without a readable metadata.name, uid or resourceVersion",
                       r->kind);
    return 0;
}

static int read_kind(const char *type, enum watch_event_kind *ret, struct err *err)
{
    static const struct {
        const char *type;
        enum watch_event_kind kind;
    } rows[] = {
        {"ADDED", WATCH_UPSERT},      {"MODIFIED", WATCH_UPSERT}, {"DELETED", WATCH_REMOVED},
        {"BOOKMARK", WATCH_BOOKMARK}, {"ERROR", WATCH_ERROR},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(type, rows[i].type) == 0) {
            *ret = rows[i].kind;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "unknown event type \"%.40s\"", type);
}

/* skimmed: the event could not be parsed, and these are its names; NULL: it is incomplete. An error, a bookmark and
 * an object without readable names are then refused: such an event does not show which entry of a cache it makes
 * out of date. */
static int validate_event(const struct kube_resource *r, const cJSON *event, bool skimmed,
                          struct watch_event *ret, struct err *err)
{
    const char *type = json_str(event, "type");
    const cJSON *object = json_child(event, "object");

    if (!event)
        return err_set(err, ERR_INVALID, "an incomplete event");
    if (!type || !cJSON_IsObject(object))
        return err_set(err, ERR_INVALID, "expected \"type\" and \"object\"");
    *ret = (struct watch_event){.object = object, .version = json_meta(object, "resourceVersion")};
    if (read_kind(type, &ret->kind, err) < 0)
        return -1;
    if (ret->kind != WATCH_ERROR && ret->kind != WATCH_BOOKMARK)
        return validate_object(r, object, err);
    if (skimmed)
        return err_set(err, ERR_INVALID, "an event of type \"%s\" that cannot be read", type);
    if (ret->kind == WATCH_BOOKMARK && !ret->version)
        return err_set(err, ERR_INVALID, "a bookmark without metadata.resourceVersion");
    return 0;
}

/* `list` comes without its items, from items_finish. */
static int validate_list(const struct kube_resource *r, const cJSON *list, struct list_meta *ret,
                         struct err *err)
{
    const char *kind = json_str(list, "kind");
    const cJSON *meta = json_child(list, "metadata");
    const char *version = json_str(meta, "resourceVersion");
    const char *more = json_str(meta, "continue");
    size_t kind_len = strlen(r->kind);

    if (!kind || strncmp(kind, r->kind, kind_len) != 0 || strcmp(kind + kind_len, "List") != 0 || !version ||
        !version[0])
        return err_set(err, ERR_INVALID,
                       "list: expected a %sList with metadata.resourceVersion, got \"%.60s\"", r->kind,
                       kind ? kind : "no kind");
    *ret = (struct list_meta){version, more && more[0] ? more : NULL};
    return 0;
}

/* ---- the state machine */

enum state { LIST, LIST_MORE, WATCH };

struct watcher {
    struct kube_watcher_options o;
    struct watcher_sink sink;
    struct kube_watcher_stats stats;
    enum state state;
    struct items items;
    struct gather line;
    char *resource_version; /* watch from here */
    char *continue_token;
    bool whole_list; /* request the next list without pages: a continue token expired */
    bool replacing;  /* replace_begin was called for this list */
    bool heard;      /* this watch sent a version */
    bool advanced;   /* this watch moved resource_version */
    bool listing;    /* a list was begun and is not complete */
    bool again;      /* another list follows it */
    bool broken;     /* feed failed, with `why` and stream_status */
    struct err why;
    struct kube_status stream_status;
    int resumes;     /* watches that failed in a row */
    int64_t lost_ms; /* when the first of these watches failed */
    struct backoff backoff;
    int64_t begin_ms, byte_ms; /* of this request: its start, its last byte */
    bool doubted;              /* some text was not JSON, last at doubted_ms */
    int64_t doubted_ms;
};

struct watcher *watcher_new(const struct kube_watcher_options *options, const struct watcher_sink *sink)
{
    struct watcher *w = memory_must(calloc(1, sizeof(*w)));

    w->o = *options;
    w->sink = *sink;
    w->backoff.random = options->seed;
    items_init(&w->items, WATCHER_OBJECT_MAX_BYTES);
    gather_init(&w->line, WATCHER_OBJECT_MAX_BYTES, true);
    return w;
}

void watcher_free(struct watcher *w)
{
    if (!w)
        return;
    items_release(&w->items);
    gather_release(&w->line);
    free(w->resource_version);
    free(w->continue_token);
    free(w);
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = memory_strdup(text);
}

int watcher_request(struct watcher *w, struct arena *a, struct kube_http_request *out, struct err *err)
{
    bool watch = w->state == WATCH;
    struct kube_request r = {
        .verb = watch ? KUBE_WATCH : KUBE_LIST,
        .resource = &w->o.resource,
        .ns = w->o.ns,
        .label_selector = w->o.label_selector,
        .field_selector = w->o.field_selector,
    };

    if (watch) {
        r.resource_version = w->resource_version;
        r.bookmarks = true;
        r.timeout_s = 300 + (int)(random_next(&w->backoff.random) % 300);
    } else {
        r.limit = w->whole_list ? 0 : WATCHER_PAGE_ITEMS;
        r.continue_token = w->state == LIST_MORE ? w->continue_token : NULL;
    }
    if (kube_request_build(&r, a, out, err) < 0)
        return -1;
    out->timeout_ms = 0;
    out->idle_timeout_ms = watch ? WATCHER_IDLE_MS : KUBE_TRANSPORT_TIMEOUT_MS;
    return 0;
}

/* Begin a new list. */
static void start_over(struct watcher *w)
{
    w->resumes = 0;
    w->state = LIST;
    w->again = w->listing = w->replacing = false; /* this new list satisfies every relist requested before */
    set_text(&w->continue_token, NULL);
}

bool watcher_relist(struct watcher *w, bool give_up)
{
    w->again = w->state != WATCH && w->listing && !give_up;
    if (!w->again)
        start_over(w);
    return !w->again;
}

const char *watcher_version(const struct watcher *w)
{
    bool known = w->state == WATCH && (!w->resumes || w->heard);

    return known ? w->resource_version : "";
}

void watcher_begin(struct watcher *w, int64_t now_ms)
{
    if (w->state == WATCH && w->resumes && now_ms - w->lost_ms >= WATCHER_AWAY_MS)
        start_over(w);
    w->begin_ms = now_ms;
    w->byte_ms = now_ms;
    w->broken = false;
    w->advanced = w->heard = false;
    w->stream_status = (struct kube_status){.retry_after_ms = -1};
    items_reset(&w->items);
    gather_reset(&w->line);
    w->stats.lists += w->state == LIST;
    w->listing = w->state != WATCH;
}

static void begin_replace(struct watcher *w)
{
    if (!w->replacing)
        w->sink.replace_begin(w->sink.ctx);
    w->replacing = true;
}

/* Whether the object itself is unreadable. Text that is not JSON may have been damaged in transit: the first
 * time the watcher lists again; a second time within two minutes the object is at fault. */
static bool is_object_bad(struct watcher *w, const struct err *why)
{
    bool again = w->doubted && w->byte_ms - w->doubted_ms < WATCHER_QUIET_MS;

    if (why->code == JSON_UNREADABLE)
        return true;
    w->doubted = true;
    w->doubted_ms = w->byte_ms;
    return again;
}

/* The tree; or NULL with *err, and in *ret_names the object's names if the text is complete. */
static cJSON *read_text(struct watcher *w, struct sv text, struct skim *over, cJSON **ret_names,
                        struct err *err)
{
    bool event = w->state == WATCH;
    cleanup_skim struct skim own = {0};

    w->stats.bytes += over ? WATCHER_OBJECT_MAX_BYTES : text.len;
    if (over) {
        err_set(err, ERR_INVALID, "over %d bytes of JSON", WATCHER_OBJECT_MAX_BYTES);
        err->code = JSON_UNREADABLE;
    } else {
        cJSON *tree = json_parse_within(text.p, text.len, JSON_DEPTH_MAX + event, err);
        if (tree)
            return tree;
        over = &own;
        skim_init(over, event);
        skim_feed(over, text);
    }
    *ret_names = skim_complete(over) ? skim_take(over) : NULL;
    return NULL;
}

static int on_item(void *ctx, struct sv text, struct skim *over, struct err *err)
{
    struct watcher *w = ctx;
    cleanup_json cJSON *names = NULL;
    cleanup_json cJSON *object = read_text(w, text, over, &names, err);

    if (object ? validate_object(&w->o.resource, object, err) < 0 : !names || !is_object_bad(w, err))
        return err_wrap(err, "list");
    begin_replace(w);
    if (object)
        w->sink.upsert(w->sink.ctx, object);
    else
        w->sink.unreadable(w->sink.ctx, names, err);
    return 0;
}

/* The list is complete. */
static void end_replace(struct watcher *w, const char *version)
{
    begin_replace(w); /* needed if the list was empty */
    set_text(&w->resource_version, version);
    w->state = w->again ? LIST : WATCH;
    w->again = w->listing = false;
    w->replacing = false;
    w->whole_list = false;
    w->resumes = 0;
    w->stats.synced = true;
    w->stats.syncs++;
    w->stats.listed = w->stats.lists;
    w->stats.listed_ms = w->byte_ms;
    w->sink.replace_end(w->sink.ctx);
}

/* unreadable: NULL, or why. */
static int on_event(struct watcher *w, const struct watch_event *e, const struct err *unreadable,
                    struct err *err)
{
    if (e->kind == WATCH_ERROR)
        return kube_status_object(e->object, &w->stream_status, err);
    /* Within a watch, versions (revisions of etcd) never decrease. */
    if (version_is_newer(w->resource_version, e->version))
        return err_set(err, ERR_INVALID, "resourceVersion %.20s after %.20s: expected none that is lower",
                       e->version, w->resource_version);
    if (e->version[0]) {
        w->heard = true;
        w->advanced = w->advanced || strcmp(e->version, w->resource_version) != 0;
        set_text(&w->resource_version, e->version);
    }
    if (e->kind == WATCH_BOOKMARK)
        return 0;
    if (e->kind == WATCH_REMOVED)
        w->sink.removed(w->sink.ctx, e->object);
    else if (unreadable)
        w->sink.unreadable(w->sink.ctx, e->object, unreadable);
    else
        w->sink.upsert(w->sink.ctx, e->object);
    return 0;
}

/* err: in: why the event cannot be read; out, on failure: why the stream ends. */
static int on_unreadable_event(struct watcher *w, const cJSON *names, struct err *err)
{
    struct err unreadable = *err;
    struct watch_event e;

    if (validate_event(&w->o.resource, names, true, &e, err) < 0 || !is_object_bad(w, &unreadable))
        return -1;
    return on_event(w, &e, &unreadable, err);
}

static int on_line(void *ctx, struct sv line, struct skim *over, struct err *err)
{
    struct watcher *w = ctx;
    struct watch_event e;
    cleanup_json cJSON *names = NULL;
    cleanup_json cJSON *json = read_text(w, line, over, &names, err);

    if (json ? validate_event(&w->o.resource, json, false, &e, err) < 0 || on_event(w, &e, NULL, err) < 0
             : on_unreadable_event(w, names, err) < 0)
        return err_wrap(err, "watch event");
    return 0;
}

int watcher_feed(struct watcher *w, struct sv bytes, int64_t now_ms)
{
    w->byte_ms = now_ms;
    int rc = w->state == WATCH ? gather_lines(&w->line, bytes, on_line, w, &w->why)
                               : items_feed(&w->items, bytes, on_item, w, &w->why);
    w->broken = rc < 0;
    return rc;
}

/* A request failed: decide the next state; return the delay. */
static int64_t fail(struct watcher *w, int64_t now_ms, const struct err *err,
                    const struct kube_status *status)
{
    bool expired = status->reason == KUBE_REASON_EXPIRED;
    bool first = backoff_is_first(&w->backoff, now_ms);

    if (w->state == WATCH && !w->resumes)
        w->lost_ms = now_ms;
    bool resume = w->state == WATCH && !expired && err->kind != ERR_INVALID && err->kind != ERR_NOT_FOUND &&
                  ++w->resumes < WATCHER_RESUMES;
    w->stats.failures++;
    w->sink.problem(w->sink.ctx, err);
    if (w->state == LIST_MORE && expired)
        w->whole_list = true;
    if (!resume)
        start_over(w);
    int64_t delay = backoff_failed(&w->backoff, now_ms, status->retry_after_ms);
    /* Versions expire in normal operation: the first such failure needs no back-off. */
    return expired && first ? 0 : delay;
}

static int64_t list_ended(struct watcher *w, int64_t now_ms)
{
    static const struct kube_status none = {.retry_after_ms = -1};
    struct list_meta head = {0};
    struct err err;
    cleanup_json cJSON *list = items_finish(&w->items, &err);

    items_reset(&w->items);
    if (!list || validate_list(&w->o.resource, list, &head, &err) < 0)
        return fail(w, now_ms, &err, &none);
    if (head.more) {
        begin_replace(w);
        w->state = LIST_MORE;
        set_text(&w->continue_token, head.more);
        return 0;
    }
    set_text(&w->continue_token, NULL);
    end_replace(w, head.version);
    return 0;
}

/* The server ended the watch in order: at its timeout, or because it shuts down. */
static int64_t watch_ended(struct watcher *w, int64_t now_ms)
{
    static const struct kube_status none = {.retry_after_ms = -1};
    struct err err;

    if (w->advanced || now_ms - w->begin_ms >= WATCHER_SHORT_MS) {
        if (w->heard) /* otherwise this watch confirmed no version */
            w->resumes = 0;
        return 0;
    }
    err_set(&err, ERR_TRANSIENT, "watch: ended after %lld ms without an event",
            (long long)(now_ms - w->begin_ms));
    return fail(w, now_ms, &err, &none);
}

int64_t watcher_end(struct watcher *w, int64_t now_ms, const struct kube_http_response *r,
                    const struct err *err)
{
    struct kube_status status = {.retry_after_ms = -1};
    struct err why;

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

struct kube_watcher_stats watcher_stats(const struct watcher *w)
{
    return w->stats;
}
