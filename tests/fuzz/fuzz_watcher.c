/* fuzz_watcher.c - a watcher continues its requests, in order and with bounded waits, whatever the server sends.
 *
 * The input is a talk: 0xff and a byte end an answer (0: the connection broke, else status 100 + 2 * byte), anything
 * else is body. Its end ends the last answer.
 */
#include "fuzz.h"

#include "kube/watcher.h"

#include <string.h>

struct told {
    bool replacing;
    uint64_t ends;
};

static void on_begin(void *ctx)
{
    ((struct told *)ctx)->replacing = true; /* again, after a list that broke off */
}

static void on_end(void *ctx)
{
    struct told *t = ctx;

    MUST(t->replacing);
    t->replacing = false;
    t->ends++;
}

static void on_object(void *ctx, const cJSON *object)
{
    (void)ctx;
    MUST(cJSON_IsObject(object));
}

static void on_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)ctx;
    MUST(cJSON_IsObject(names) && why->kind == ERR_INVALID && why->msg[0]);
}

static void on_problem(void *ctx, const struct err *err)
{
    (void)ctx;
    MUST(err->kind != ERR_NONE && err->msg[0]);
}

static void ask(struct watcher *w, int64_t now)
{
    cleanup_arena struct arena a = {0};
    struct kube_http_request req;
    struct err err;

    watcher_begin(w, now);
    MUST(watcher_request(w, &a, &req, &err) == 0);
    MUST(strcmp(req.method, "GET") == 0 && req.path[0] == '/');
    /* A list never begins at a version we happen to know. */
    MUST(strstr(req.path, "watch=true") || !strstr(req.path, "resourceVersion="));
}

static int64_t end(struct watcher *w, int64_t now, int code, bool useless)
{
    struct kube_http_response r = {.status = code, .retry_after_ms = -1};
    struct err err;

    err_set(&err, ERR_TRANSIENT, "broken");
    if (useless)
        return watcher_end(w, now, NULL, NULL);
    return code ? watcher_end(w, now, &r, NULL) : watcher_end(w, now, NULL, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct told told = {0};
    struct kube_watcher_options o = {.resource = KUBE_PODS, .seed = 1};
    struct watcher_sink sink = {&told, on_begin, on_end, on_object, on_object, on_unreadable, on_problem};
    struct watcher *w = watcher_new(&o, &sink);
    int64_t now = 0;

    if (size > 100000)
        size = 100000;
    for (size_t at = 0; at < size;) {
        const uint8_t *stop = memchr(data + at, 0xff, size - at);
        size_t n = stop ? (size_t)(stop - data) - at : size - at;
        ask(w, now);
        bool useless = n > 0 && watcher_feed(w, (struct sv){(const char *)data + at, n}, now) < 0;
        MUST(watcher_stats(w).syncs == told.ends && watcher_stats(w).synced == (told.ends > 0));
        at += n;
        int code = at + 1 < size && data[at + 1] ? 100 + 2 * data[at + 1] : 0;
        /* Bytes of a stream come with a 2xx answer only. */
        if (n > 0 && code)
            code = 200;
        int64_t wait = end(w, now, code, useless);
        MUST(wait >= 0 && wait <= 2 * BACKOFF_MAX_MS);
        now += wait + 1;
        at += 2;
    }
    watcher_free(w);
    return 0;
}
