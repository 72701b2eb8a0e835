/* podload.c - create pods as fast as kube/http can send them, and print the rate and what it cost this process.
 *
 * Usage: podload NAMESPACE COUNT BYTES SERVER [CA_FILE TOKEN_FILE]       (BYTES pads each pod)
 * The namespace must exist; delete it afterwards. The figures in kube/README.md are this program's.
 */
#include "common/json.h"
#include "kube/client.h"
#include "kube/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { COUNT_MAX = 100000, BYTES_MAX = 1 << 20 };

struct app {
    struct kube_loop *loop;
    struct kube_transport api;
    const char *ns;
    char *padding;
    int count, started, ended, failed;
};

static void start_some(struct app *app);

static void on_done(void *ctx, struct kube_reply *reply)
{
    struct app *app = ctx;

    app->ended++;
    if (reply->err) {
        app->failed++;
        fprintf(stderr, "podload: %s\n", reply->err->msg);
    }
    if (app->ended == app->count)
        kube_loop_stop(app->loop);
    else
        start_some(app);
}

static int start_one(struct app *app, struct err *err)
{
    char *body = NULL;

    if (asprintf(&body,
                 "{\"metadata\":{\"name\":\"load-%06d\",\"annotations\":{\"padding\":\"%s\"}},"
                 "\"spec\":{\"nodeName\":\"none\",\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}",
                 app->started, app->padding) < 0)
        abort();
    struct kube_request r = {
        .verb = KUBE_CREATE, .resource = &KUBE_PODS, .ns = app->ns, .body = sv_from(body)};
    int rc = kube_request_start(&app->api, &r, on_done, app, err) ? 0 : -1;
    free(body);
    return rc;
}

/* Enough to keep every place of the pool busy. */
static void start_some(struct app *app)
{
    struct err err;

    while (app->started < app->count && app->started - app->ended < 256) {
        if (start_one(app, &err) < 0) {
            fprintf(stderr, "podload: %s\n", err.msg);
            app->failed++;
            app->ended++;
        }
        app->started++;
    }
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int run(struct app *app, const struct kube_config_given *server, struct err *err)
{
    cleanup_kube_config struct kube_config config = {0};
    struct clock clock = clock_system();
    struct rusage use;

    if (kube_config_find(&config, server, err) < 0)
        return -1;
    cleanup_kube_loop struct kube_loop *loop = kube_loop_new(clock, err);
    cleanup_http struct http *http = loop ? http_new(loop, &config, "podload", err) : NULL;
    if (!http)
        return -1;
    app->loop = loop;
    app->api = http_transport(http);
    int64_t begin = clock.mono_ms(clock.ctx);
    start_some(app);
    if (kube_loop_run(loop, err) < 0)
        return -1;
    double s = (double)(clock.mono_ms(clock.ctx) - begin) / 1000.0;
    getrusage(RUSAGE_SELF, &use);
    printf("%d pods, %d failed: %.2f s, %.0f requests/s; CPU %.2f s user, %.2f s system; peak %ld KiB\n",
           app->count, app->failed, s, app->count / s, seconds(use.ru_utime), seconds(use.ru_stime),
           use.ru_maxrss);
    return app->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    long bytes = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    struct kube_config_given server = {0};
    struct err err;

    if (argc < 5 || count < 1 || count > COUNT_MAX || bytes < 0 || bytes > BYTES_MAX) {
        fprintf(stderr,
                "usage: podload NAMESPACE COUNT BYTES SERVER [CA_FILE TOKEN_FILE]\n  COUNT 1 to %d, BYTES up "
                "to %d\n",
                COUNT_MAX, BYTES_MAX);
        return 2;
    }
    struct app app = {.ns = argv[1], .count = (int)count, .padding = malloc((size_t)bytes + 1)};
    if (!app.padding)
        abort();
    memset(app.padding, 'x', (size_t)bytes);
    app.padding[bytes] = '\0';
    server.server = argv[4];
    server.ca_file = argc > 5 ? argv[5] : NULL;
    server.token_file = argc > 6 ? argv[6] : NULL;
    int rc = run(&app, &server, &err);
    if (rc < 0)
        fprintf(stderr, "podload: %s\n", err.msg);
    free(app.padding);
    return rc < 0 ? 1 : rc;
}
