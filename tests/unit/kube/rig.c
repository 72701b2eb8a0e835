/* rig.c - the common ground of the tests that use the network. */
#include "rig.h"

#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DESCRIPTORS = 1024 };

void rig_config(struct kube_config *c, const char *url)
{
    struct err err;

    *c = (struct kube_config){.server = strdup(url), .namespace_name = strdup("default")};
    c->token.bytes = (struct buf)BUF_INIT(16);
    assert_int_equal(buf_puts(&c->token.bytes, "secret-token", &err), 0);
}

static int64_t fast_ms(void *ctx)
{
    (void)ctx;
    return clock_mono_ms() * 20;
}

static int64_t slow_ms(void *ctx)
{
    (void)ctx;
    return clock_mono_ms() / 50;
}

static int64_t jumping_ms(void *ctx)
{
    return clock_mono_ms() + *(int64_t *)ctx;
}

static int setup(void **ctx, struct clock clock)
{
    struct rig *r = calloc(1, sizeof(*r));
    struct err err;

    if (clock.mono_ms == jumping_ms)
        clock.ctx = &r->jumped_ms;
    r->server = fake_apiserver_start();
    rig_config(&r->config, fake_apiserver_url(r->server));
    r->loop = kube_loop_new(clock, &err);
    assert_non_null(r->loop);
    r->http = http_new(r->loop, &r->config, "test", &err);
    assert_non_null(r->http);
    r->api = http_transport(r->http);
    *ctx = r;
    return 0;
}

int rig_setup(void **ctx)
{
    return setup(ctx, clock_system());
}

int rig_setup_fast(void **ctx)
{
    return setup(ctx, (struct clock){fast_ms, fast_ms, fast_ms, NULL, NULL});
}

int rig_setup_slow(void **ctx)
{
    return setup(ctx, (struct clock){slow_ms, slow_ms, slow_ms, NULL, NULL});
}

int rig_setup_jumps(void **ctx)
{
    return setup(ctx, (struct clock){jumping_ms, jumping_ms, jumping_ms, NULL, NULL});
}

int rig_teardown(void **ctx)
{
    struct rig *r = *ctx;

    http_free(r->http);
    kube_loop_free(r->loop);
    kube_config_release(&r->config);
    fake_apiserver_stop(r->server);
    free(r);
    return 0;
}

void rig_turn(struct kube_loop *l, int64_t limit_ms)
{
    struct err err;

    if (clock_mono_ms() > limit_ms)
        fail_msg("it did not happen within ten minutes");
    if (kube_loop_turn(l, 20, &err) < 0)
        fail_msg("loop: %s", err.msg);
}

void rig_until(struct kube_loop *l, bool (*done)(void *ctx), void *ctx)
{
    RIG_UNTIL(l, done(ctx));
}

void rig_on_reply(void *ctx, struct kube_reply *reply)
{
    struct rig_reply *out = ctx;

    assert_false(out->over);
    out->over = true;
    out->status = reply->status;
    if (reply->err)
        out->err = *reply->err;
    const cJSON *meta = reply->unreadable ? cJSON_GetObjectItem(reply->names, "metadata") : NULL;
    out->unreadable = reply->unreadable != NULL;
    snprintf(out->uid, sizeof(out->uid), "%s", meta ? cJSON_GetObjectItem(meta, "uid")->valuestring : "");
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    rig_on_reply(ctx, reply);
    ((struct rig_reply *)ctx)->object = TAKE(reply->object);
}

bool rig_is_over(void *ctx)
{
    return ((struct rig_reply *)ctx)->over;
}

void rig_call(struct rig *r, const struct kube_request *req, struct rig_reply *reply)
{
    struct err err;

    *reply = (struct rig_reply){0};
    if (!kube_request_start(&r->api, req, on_reply, reply, &err))
        fail_msg("start: %s", err.msg);
    rig_until(r->loop, rig_is_over, reply);
}

void rig_reply_release(struct rig_reply *reply)
{
    cJSON_Delete(reply->object);
    reply->object = NULL;
}

void rig_put(const struct rig *r, const char *path, const char *json)
{
    assert_true(fake_put(r->server, path, json));
}

unsigned rig_server_port(const struct rig *r)
{
    return (unsigned)atoi(strrchr(fake_apiserver_url(r->server), ':') + 1);
}

int rig_client_ports(const struct rig *r, unsigned *ret, int max)
{
    int n = 0;

    for (int fd = 0; fd < DESCRIPTORS && n < max; fd++) {
        struct sockaddr_in local, remote;
        struct tcp_info info;
        socklen_t size = sizeof(local), remote_size = sizeof(remote), info_size = sizeof(info);
        if (getpeername(fd, (struct sockaddr *)&remote, &remote_size) == 0 && remote.sin_family == AF_INET &&
            ntohs(remote.sin_port) == rig_server_port(r) &&
            getsockname(fd, (struct sockaddr *)&local, &size) == 0 &&
            getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_size) == 0 &&
            info.tcpi_state == TCP_ESTABLISHED)
            ret[n++] = ntohs(local.sin_port);
    }
    return n;
}
