/* talk.c - every answer is given at once; the test's time stands still unless it moves it. */
#include "talk.h"

#include "jsontext.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct talk *t, const char *mark, const char *text)
{
    size_t len = strlen(t->seen);

    snprintf(t->seen + len, sizeof(t->seen) - len, "%s%s ", mark, text);
}

static const char *name_of(const cJSON *o)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(o, "metadata"), "name")->valuestring;
}

static void on_begin(void *ctx)
{
    add(ctx, "[", "");
}

static void on_end(void *ctx)
{
    add(ctx, "]", "");
}

static void on_upsert(void *ctx, const cJSON *o)
{
    add(ctx, "+", name_of(o));
}

static void on_removed(void *ctx, const cJSON *o)
{
    add(ctx, "-", name_of(o));
}

static void on_unreadable(void *ctx, const cJSON *o, const struct err *why)
{
    struct talk *t = ctx;

    add(ctx, "?", name_of(o));
    snprintf(t->problem, sizeof(t->problem), "%s", why->msg);
}

static void on_problem(void *ctx, const struct err *err)
{
    struct talk *t = ctx;

    add(t, "!", "");
    snprintf(t->problem, sizeof(t->problem), "%s", err->msg);
}

int talk_setup(void **ctx)
{
    struct talk *t = calloc(1, sizeof(*t));
    struct kube_watcher_options o = {
        .resource = KUBE_PODS, .ns = "ns", .label_selector = "app=x", .seed = 42};
    struct watcher_sink sink = {t, on_begin, on_end, on_upsert, on_removed, on_unreadable, on_problem};

    assert_non_null(t);
    t->w = watcher_new(&o, &sink);
    t->now = 1000000;
    *ctx = t;
    return 0;
}

int talk_teardown(void **ctx)
{
    struct talk *t = *ctx;

    watcher_free(t->w);
    arena_release(&t->a);
    free(t);
    return 0;
}

void talk_asks(struct talk *t, const char *path_part)
{
    struct err err;

    watcher_begin(t->w, t->now);
    assert_int_equal(watcher_request(t->w, &t->a, &t->req, &err), 0);
    if (!strstr(t->req.path, path_part))
        fail_msg("expected \"%s\" in %s", path_part, t->req.path);
}

int talk_feed(struct talk *t, const char *bytes)
{
    cleanup_free char *text = jsontext(bytes);

    return watcher_feed(t->w, sv_from(text), t->now);
}

int64_t talk_ends(struct talk *t, int status)
{
    return watcher_end(t->w, t->now, &(struct kube_http_response){.status = status, .retry_after_ms = -1},
                       NULL);
}

int64_t talk_breaks(struct talk *t, enum err_kind kind)
{
    struct err err;

    err_set(&err, kind, "as asked");
    return watcher_end(t->w, t->now, NULL, &err);
}

void talk_saw(struct talk *t, const char *expected)
{
    assert_string_equal(t->seen, expected);
    t->seen[0] = '\0';
}

void talk_answers(struct talk *t, const char *path_part, const char *bytes)
{
    talk_asks(t, path_part);
    assert_int_equal(talk_feed(t, bytes), 0);
    assert_int_equal(talk_ends(t, 200), 0);
}

void talk_expires(struct talk *t, const char *path_part)
{
    talk_asks(t, path_part);
    talk_ends(t, 410);
    talk_saw(t, "! ");
    t->now += WATCHER_QUIET_MS;
}

void talk_synced(struct talk *t)
{
    talk_asks(t, "/api/v1/namespaces/ns/pods?");
    assert_int_equal(talk_feed(t, LIST("10", "", ITEM("a", "5") "," ITEM("b", "6"))), 0);
    assert_int_equal(talk_ends(t, 200), 0);
    talk_saw(t, "[ +a +b ] ");
    assert_true(watcher_stats(t->w).synced);
}
