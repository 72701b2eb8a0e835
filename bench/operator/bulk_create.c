/* bulk_create.c - creates objects as fast as the API server answers, over the operator's own client.
 *
 * Usage: bulk_create SERVER CA_FILE TOKEN_FILE IN_FLIGHT EVERY_MS < OBJECTS
 * One object of JSON per line, with apiVersion, kind, metadata.namespace and metadata.name; they are created in this
 * order. EVERY_MS 0: as many as IN_FLIGHT allows. Prints "NAME SENT ANSWERED" for each, in nanoseconds of the monotonic
 * clock. The first failure ends the program with 1.
 */
#include "common/json.h"
#include "kube/client.h"
#include "kube/http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT_MAX = 1000000, EVERY_MS_MAX = 60000, INPUT_MAX_BYTES = 1 << 30 };

struct object {
    struct bulk *bulk;
    struct sv text;
    struct kube_resource resource;
    const char *ns, *name;
    int64_t sent_ns;
};

struct bulk {
    struct kube_loop *loop;
    struct kube_transport api;
    struct arena memory; /* of the objects and their strings */
    struct object *objects;
    int64_t count, in_flight, every_ms;
    int64_t started, answered;
    struct kube_loop_timer next;
    struct err err;
    bool failed;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(struct bulk *b, const struct err *err)
{
    if (!b->failed)
        b->err = *err;
    b->failed = true;
    kube_loop_stop(b->loop);
}

static void launch(void *ctx);

static void on_created(void *ctx, struct kube_reply *reply)
{
    struct object *o = ctx;
    struct bulk *b = o->bulk;

    if (reply->err)
        fail(b, reply->err);
    else
        printf("%s %lld %lld\n", o->name, (long long)o->sent_ns, (long long)now_ns());
    if (++b->answered == b->count)
        kube_loop_stop(b->loop);
    else if (!b->failed && !b->every_ms)
        launch(b);
}

static void create_one(struct bulk *b)
{
    struct object *o = &b->objects[b->started++];
    struct kube_request r = {.verb = KUBE_CREATE, .resource = &o->resource, .ns = o->ns, .body = o->text};
    struct err err;

    o->sent_ns = now_ns();
    if (!kube_request_start(&b->api, &r, on_created, o, &err))
        fail(b, &err);
}

static void launch(void *ctx)
{
    struct bulk *b = ctx;

    while (!b->failed && b->started < b->count && b->started - b->answered < b->in_flight) {
        create_one(b);
        if (b->every_ms)
            break;
    }
    if (b->every_ms && b->started < b->count)
        kube_loop_timer_set(b->loop, &b->next, kube_loop_now_ms(b->loop) + b->every_ms);
}

static char *plural_of(struct arena *a, const char *kind)
{
    char *plural = arena_printf(a, "%ss", kind);

    for (char *p = plural; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return plural;
}

static int read_object(struct bulk *b, struct sv line, struct object *o, struct err *err)
{
    cleanup_json cJSON *node = json_parse(line.p, line.len, err);

    if (!node)
        return -1;
    const cJSON *meta = json_child(node, "metadata");
    const char *version = json_str(node, "apiVersion"), *kind = json_str(node, "kind");
    const char *ns = json_str(meta, "namespace"), *name = json_str(meta, "name");
    if (!version || !kind || !ns || !name)
        return err_set(err, ERR_INVALID,
                       "object: expected apiVersion, kind, metadata.namespace and metadata.name");
    const char *slash = strchr(version, '/');
    o->bulk = b;
    o->text = line;
    o->ns = arena_strdup(&b->memory, ns);
    o->name = arena_strdup(&b->memory, name);
    o->resource =
        (struct kube_resource){arena_printf(&b->memory, "%.*s", slash ? (int)(slash - version) : 0, version),
                               arena_strdup(&b->memory, slash ? slash + 1 : version),
                               plural_of(&b->memory, kind), arena_strdup(&b->memory, kind), false};
    return 0;
}

static int read_objects(struct bulk *b, struct buf *text, struct err *err)
{
    char piece[4096];
    size_t n;

    while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
        if (buf_append(text, piece, n, err) < 0)
            return -1;
    struct sv rest = {buf_str(text), text->len}, line;
    for (size_t i = 0; i < text->len; i++)
        b->count += text->data[i] == '\n';
    if (b->count < 1 || b->count > COUNT_MAX)
        return err_set(err, ERR_INVALID, "objects: expected 1..%d lines, got %lld", COUNT_MAX,
                       (long long)b->count);
    b->objects = arena_array(&b->memory, (size_t)b->count, struct object);
    for (int64_t i = 0; i < b->count; i++)
        if (!sv_next(&rest, '\n', &line) || read_object(b, line, &b->objects[i], err) < 0)
            return -1;
    return 0;
}

static int run(struct bulk *b, const struct kube_config_given *server, struct err *err)
{
    cleanup_kube_config struct kube_config config = {0};

    if (kube_config_find(&config, server, err) < 0)
        return -1;
    cleanup_kube_loop struct kube_loop *loop = kube_loop_new(clock_system(), err);
    cleanup_http struct http *http = loop ? http_new(loop, &config, "bulk_create", err) : NULL;
    if (!http)
        return -1;
    b->loop = loop;
    b->api = http_transport(http);
    b->next = (struct kube_loop_timer){.fire = launch, .ctx = b};
    launch(b);
    int rc = b->failed ? 0 : kube_loop_run(loop, err);
    kube_loop_timer_cancel(loop, &b->next);
    if (rc == 0 && b->failed)
        *err = b->err;
    return b->failed ? -1 : rc;
}

static int read_number(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                       struct err *err)
{
    if (sv_i64(sv_from(text), min, max, ret))
        return 0;
    return err_set(err, ERR_INVALID, "%s: expected %lld..%lld, got \"%.40s\"", what, (long long)min,
                   (long long)max, text);
}

int main(int argc, char **argv)
{
    cleanup_buf struct buf text = BUF_INIT(INPUT_MAX_BYTES);
    struct bulk b = {0};
    struct err err;

    if (argc != 6) {
        fputs("usage: bulk_create SERVER CA_FILE TOKEN_FILE IN_FLIGHT EVERY_MS < OBJECTS\n", stderr);
        return 2;
    }
    struct kube_config_given server = {argv[1], argv[2], argv[3]};
    if (read_number("IN_FLIGHT", argv[4], 1, COUNT_MAX, &b.in_flight, &err) < 0 ||
        read_number("EVERY_MS", argv[5], 0, EVERY_MS_MAX, &b.every_ms, &err) < 0) {
        fprintf(stderr, "bulk_create: %s\n", err.msg);
        return 2;
    }
    bool done = read_objects(&b, &text, &err) == 0 && run(&b, &server, &err) == 0;
    arena_release(&b.memory);
    if (!done)
        fprintf(stderr, "bulk_create: %s\n", err.msg);
    return done ? 0 : 1;
}
