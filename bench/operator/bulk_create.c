/* bulk_create.c - creates copies of one object as fast as the API server answers, over the operator's own client.
 *
 * Usage: bulk_create SERVER CA_FILE TOKEN_FILE PLURAL COUNT IN_FLIGHT EVERY_MS < object.json
 * metadata.name is the beginning of the names: copies are NAME-0, NAME-1 and so on. EVERY_MS 0: as many as
 * IN_FLIGHT allows. Prints "NAME SENT ANSWERED" for each, in nanoseconds of the monotonic clock. The first failure ends
 * the program with 1.
 */
#include "common/json.h"
#include "kube/client.h"
#include "kube/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT_MAX = 1000000, EVERY_MS_MAX = 60000, INPUT_MAX_BYTES = 1 << 20, NAME_BYTES = 128 };

struct bulk {
    struct kube_loop *loop;
    struct kube_transport api;
    struct kube_resource resource;
    const char *ns, *name;
    cJSON *object;
    struct kube_config_given server;
    int64_t count, in_flight, every_ms;
    int64_t started, answered;
    struct kube_loop_timer next;
    struct err err;
    bool failed;
};

struct copy {
    struct bulk *bulk;
    int64_t number, sent_ns;
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
    struct copy *c = ctx;
    struct bulk *b = c->bulk;

    if (reply->err)
        fail(b, reply->err);
    else
        printf("%s-%lld %lld %lld\n", b->name, (long long)c->number, (long long)c->sent_ns,
               (long long)now_ns());
    free(c);
    if (++b->answered == b->count)
        kube_loop_stop(b->loop);
    else if (!b->failed && !b->every_ms)
        launch(b);
}

static void create_one(struct bulk *b)
{
    cleanup_arena struct arena a = {0};
    struct kube_request r = {.verb = KUBE_CREATE, .resource = &b->resource, .ns = b->ns};
    struct copy *c = calloc(1, sizeof(*c));
    char name[NAME_BYTES];
    struct err err;

    if (!c)
        abort();
    *c = (struct copy){b, b->started++, now_ns()};
    snprintf(name, sizeof(name), "%s-%lld", b->name, (long long)c->number);
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(b->object, "metadata"), "name",
                                           cJSON_CreateString(name));
    r.body = sv_from(json_print(b->object, &a));
    if (kube_request_start(&b->api, &r, on_created, c, &err))
        return;
    free(c);
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

static cJSON *read_object(struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(INPUT_MAX_BYTES);
    char piece[4096];
    size_t n;

    while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
        if (buf_append(&text, piece, n, err) < 0)
            return NULL;
    return json_parse(buf_str(&text), text.len, err);
}

/* apiVersion "v1" or "group/version"; the strings are those of the object and of `group`. */
static int read_resource(struct bulk *b, const char *plural, char *group, size_t size, struct err *err)
{
    const char *version = json_str(b->object, "apiVersion");
    const char *kind = json_str(b->object, "kind");
    const cJSON *meta = json_find(b->object, (const char *[]){"metadata", NULL});
    const char *slash = version ? strchr(version, '/') : NULL;

    b->ns = json_str(meta, "namespace");
    b->name = json_str(meta, "name");
    if (!version || !kind || !b->ns || !b->name)
        return err_set(err, ERR_INVALID,
                       "object: expected apiVersion, kind, metadata.namespace and metadata.name");
    snprintf(group, size, "%.*s", slash ? (int)(slash - version) : 0, version);
    b->resource = (struct kube_resource){group, slash ? slash + 1 : version, plural, kind, false};
    return 0;
}

static int run(struct bulk *b, struct err *err)
{
    cleanup_kube_config struct kube_config config = {0};

    if (kube_config_find(&config, &b->server, err) < 0)
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
    struct bulk b = {0};
    char group[NAME_BYTES];
    char name[NAME_BYTES];
    struct err err;

    if (argc != 8) {
        fputs("usage: bulk_create SERVER CA_FILE TOKEN_FILE PLURAL COUNT IN_FLIGHT EVERY_MS < object.json\n",
              stderr);
        return 2;
    }
    b.server = (struct kube_config_given){argv[1], argv[2], argv[3]};
    if (read_number("COUNT", argv[5], 1, COUNT_MAX, &b.count, &err) < 0 ||
        read_number("IN_FLIGHT", argv[6], 1, COUNT_MAX, &b.in_flight, &err) < 0 ||
        read_number("EVERY_MS", argv[7], 0, EVERY_MS_MAX, &b.every_ms, &err) < 0) {
        fprintf(stderr, "bulk_create: %s\n", err.msg);
        return 2;
    }
    cleanup_json cJSON *object = read_object(&err);
    b.object = object;
    if (object && read_resource(&b, argv[4], group, sizeof(group), &err) == 0) {
        snprintf(name, sizeof(name), "%s", b.name); /* the object's own is replaced */
        b.name = name;
        if (run(&b, &err) == 0)
            return 0;
    }
    fprintf(stderr, "bulk_create: %s\n", err.msg);
    return 1;
}
