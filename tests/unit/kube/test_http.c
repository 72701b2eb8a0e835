/* test_http.c - the real transport against a real server that misbehaves. */
#include "rig.h"

#include "common/fsutil.h"
#include "common/json.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GET_POD (&(struct kube_request){.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "a"})

static struct kube_request create_pod(const char *body)
{
    return (struct kube_request){
        .verb = KUBE_CREATE, .resource = &KUBE_PODS, .ns = "ns", .body = sv_from(body)};
}

static void test_create_get_patch_delete(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;
    struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":1}}");

    rig_call(r, &create, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    assert_int_equal(reply.status.code, 201);
    char *uid = strdup(json_str(cJSON_GetObjectItem(reply.object, "metadata"), "uid"));
    rig_reply_release(&reply);

    rig_call(r, &create, &reply);
    assert_int_equal(reply.err.kind, ERR_CONFLICT);
    assert_int_equal(reply.status.reason, KUBE_REASON_ALREADY_EXISTS);

    struct kube_request patch = {.verb = KUBE_PATCH,
                                 .resource = &KUBE_PODS,
                                 .ns = "ns",
                                 .name = "a",
                                 .subresource = "status",
                                 .body = sv_from("{\"status\":{\"phase\":\"Failed\"}}")};
    rig_call(r, &patch, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    rig_reply_release(&reply);
    rig_call(r, GET_POD, &reply);
    assert_string_equal(json_str(cJSON_GetObjectItem(reply.object, "status"), "phase"), "Failed");
    rig_reply_release(&reply);

    cleanup_arena struct arena a = {0};
    struct kube_request drop = {.verb = KUBE_DELETE,
                                .resource = &KUBE_PODS,
                                .ns = "ns",
                                .name = "a",
                                .body = kube_delete_options(&a, "another-uid", NULL, NULL, -1)};
    rig_call(r, &drop, &reply);
    assert_int_equal(reply.err.kind, ERR_CONFLICT);
    drop.body = kube_delete_options(&a, uid, NULL, NULL, -1);
    rig_call(r, &drop, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    rig_reply_release(&reply);
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_NOT_FOUND);
    free(uid);
}

static void test_faults(void **ctx)
{
    static const struct {
        struct fake_fault_plan plan;
        enum err_kind kind;
        int64_t retry_ms;
        bool effect;
    } rows[] = {
        {{.fault = FAKE_STATUS, .status = 409}, ERR_CONFLICT, -1, false},
        {{.fault = FAKE_STATUS, .status = 500}, ERR_TRANSIENT, -1, false},
        {{.fault = FAKE_STATUS, .status = 503, .retry_after_s = 3}, ERR_TRANSIENT, 3000, false},
        {{.fault = FAKE_STATUS, .status = 429, .retry_after_s = 1}, ERR_TRANSIENT, 1000, false},
        {{.fault = FAKE_STATUS, .status = 422}, ERR_INVALID, -1, false},
        {{.fault = FAKE_STATUS, .status = 302}, ERR_TRANSIENT, -1, false},
        {{.fault = FAKE_DROP_BEFORE}, ERR_TRANSIENT, -1, false},
        {{.fault = FAKE_DROP_AFTER}, ERR_TRANSIENT, -1, true},
        {{.fault = FAKE_RESET_BODY}, ERR_TRANSIENT, -1, true},
        {{.fault = FAKE_GARBAGE_BODY}, ERR_TRANSIENT, -1, true},
    };
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig_reply reply;
        struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"}}");
        fake_plan_fault(r->server, &rows[i].plan);
        rig_call(r, &create, &reply);
        if (reply.err.kind != rows[i].kind || reply.status.retry_after_ms != rows[i].retry_ms)
            fail_msg("row %zu: %s: %s", i, err_kind_name(reply.err.kind), reply.err.msg);
        assert_null(reply.object);
        assert_int_equal(fake_count(r->server, "/api/v1/pods"), rows[i].effect ? 1 : 0);
        fake_remove(r->server, "/api/v1/namespaces/ns/pods/a");
    }
    fake_plan_fault(r->server, NULL);
    /* Nothing of this lingers: the next call works. */
    struct rig_reply reply;
    struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"}}");
    rig_call(r, &create, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    rig_reply_release(&reply);
}

struct plain {
    struct err err;
    int status;
    int n_done, n_chunks;
    size_t bytes;
    bool over;
    struct rig *rig;
    struct http_call *call;
    bool cancel_at_chunk;
    int64_t due_ms;
};

static void on_done(void *ctx, const struct http_response *r, const struct err *err)
{
    struct plain *p = ctx;

    p->n_done++;
    p->over = true;
    p->status = r ? r->status : 0;
    p->bytes += r ? r->body.len : 0;
    if (err)
        p->err = *err;
}

static void on_chunk(void *ctx, struct sv bytes)
{
    struct plain *p = ctx;

    p->n_chunks++;
    p->bytes += bytes.len;
    if (!p->cancel_at_chunk)
        return;
    transport_cancel(&p->rig->api, p->call);
    p->over = true;
}

static bool plain_over(void *ctx)
{
    return ((struct plain *)ctx)->over;
}

static bool has_struck(void *ctx)
{
    return fake_faults_done(((struct rig *)ctx)->server) > 0;
}

static void start_plain(struct rig *r, struct plain *p, const struct http_request *req, bool stream)
{
    struct http_handler h = {.ctx = p, .chunk = stream ? on_chunk : NULL, .done = on_done};
    struct err err;

    p->rig = r;
    p->call = transport_start(&r->api, req, &h, &err);
    assert_non_null(p->call);
}

static void test_timeouts(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request whole = {.method = "GET", .path = "/api/v1/namespaces/ns/pods/a", .timeout_ms = 100};
    struct http_request idle = {
        .method = "GET", .path = "/api/v1/namespaces/ns/pods/a", .idle_timeout_ms = 100};
    struct plain a = {0}, b = {0};

    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
    start_plain(r, &a, &whole, false);
    start_plain(r, &b, &idle, true);
    rig_until(r->loop, plain_over, &a);
    rig_until(r->loop, plain_over, &b);
    assert_int_equal(a.err.kind, ERR_TIMEOUT);
    assert_int_equal(b.err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(b.err.msg, "no byte for 100 ms"));
}

static bool after_two_seconds(void *ctx)
{
    struct plain *p = ctx;

    return loop_now_ms(p->rig->loop) >= p->due_ms;
}

/* Where one connection went silent the idle ones are not trusted either: the next request has one of its own. */
static void test_silence_takes_the_idle_connections_along(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request get = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 30000};
    struct http_request brief = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 100};
    struct plain p[4] = {0};

    for (int cancel = 0; cancel < 2; cancel++) {
        for (int i = 0; i < 3; i++) {
            p[i] = (struct plain){0};
            start_plain(r, &p[i], &get, false);
        }
        for (int i = 0; i < 3; i++)
            rig_until(r->loop, plain_over, &p[i]);
        p[0].due_ms = loop_now_ms(r->loop) + 2100; /* libcurl counts how long they are idle in seconds */
        rig_until(r->loop, after_two_seconds, &p[0]);
        fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
        p[3] = (struct plain){0};
        start_plain(r, &p[3], cancel ? &get : &brief, false);
        if (cancel) { /* as the elector does */
            rig_until(r->loop, has_struck, r);
            transport_cancel(&r->api, p[3].call);
        } else {
            rig_until(r->loop, plain_over, &p[3]);
            assert_int_equal(p[3].err.kind, ERR_TIMEOUT);
        }
        fake_plan_fault(r->server, NULL);
        int before = fake_connections(r->server);
        p[3] = (struct plain){0};
        start_plain(r, &p[3], &get, false);
        rig_until(r->loop, plain_over, &p[3]);
        assert_int_equal(p[3].status, 200);
        assert_int_equal(fake_connections(r->server), before + 1);
    }
}

/* Headers and half a body, then nothing: collected or in pieces, it ends. */
static void test_a_body_that_stalls(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request whole = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 300};
    struct http_request idle = {.method = "GET", .path = "/api/v1/pods", .idle_timeout_ms = 300};
    struct plain a = {0}, b = {0};

    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_STALL_BODY});
    start_plain(r, &a, &whole, false);
    start_plain(r, &b, &idle, true);
    rig_until(r->loop, plain_over, &a);
    rig_until(r->loop, plain_over, &b);
    assert_int_equal(a.err.kind, ERR_TIMEOUT);
    assert_int_equal(b.err.kind, ERR_TIMEOUT);
    assert_int_equal(a.bytes, 0);
    assert_true(b.bytes > 0);
}

/* A quiet watch ends by its idle timer, also after it had bytes. */
static void test_watch_goes_quiet(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request watch = {
        .method = "GET", .path = "/api/v1/pods?watch=true", .idle_timeout_ms = 150, .own_connection = true};
    struct plain p = {0};

    fake_put(r->server, "/api/v1/namespaces/ns/pods/a", "{}");
    start_plain(r, &p, &watch, true);
    rig_until(r->loop, plain_over, &p);
    assert_int_equal(p.err.kind, ERR_TIMEOUT);
    assert_true(p.bytes > 0);
}

static void test_answer_over_its_limit(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request req = {
        .method = "GET", .path = "/api/v1/pods", .timeout_ms = 30000, .body_max_bytes = 50};
    struct plain p = {0};

    start_plain(r, &p, &req, false);
    rig_until(r->loop, plain_over, &p);
    assert_int_equal(p.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(p.err.msg, "over 50 bytes"));
}

/* More than is buffered at a time: the peer is made to wait and nothing is lost. */
static void test_large_stream_is_whole(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request req = {.method = "GET", .path = "/api/v1/configmaps", .idle_timeout_ms = 30000};
    struct plain stream = {0}, whole = {0};
    static char body[100100];
    char path[80];

    size_t n = (size_t)snprintf(body, sizeof(body), "{\"data\":{\"x\":\"");
    memset(body + n, 'y', 100000);
    snprintf(body + n + 100000, sizeof(body) - n - 100000, "\"}}");
    for (int i = 0; i < 30; i++) {
        snprintf(path, sizeof(path), "/api/v1/namespaces/ns/configmaps/c%d", i);
        assert_true(fake_put(r->server, path, body));
    }
    start_plain(r, &stream, &req, true);
    rig_until(r->loop, plain_over, &stream);
    assert_int_equal(stream.status, 200);
    assert_true(stream.n_chunks > 10);
    start_plain(r, &whole, &req, false);
    rig_until(r->loop, plain_over, &whole);
    assert_int_equal(whole.err.kind, ERR_NONE);
    assert_int_equal(stream.bytes, whole.bytes);
    assert_true(whole.bytes > 3000000);
}

static void test_cancel(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request watch = {.method = "GET", .path = "/api/v1/pods?watch=true", .own_connection = true};
    struct http_request get = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 30000};
    struct plain inside = {.cancel_at_chunk = true}, outside = {0}, next = {0};

    fake_put(r->server, "/api/v1/namespaces/ns/pods/a", "{}");
    start_plain(r, &inside, &watch, true);
    rig_until(r->loop, plain_over, &inside);
    start_plain(r, &outside, &get, false);
    transport_cancel(&r->api, outside.call);
    start_plain(r, &next, &get, false);
    rig_until(r->loop, plain_over, &next);
    assert_int_equal(inside.n_done + outside.n_done, 0);
    assert_int_equal(inside.n_chunks, 1);
    assert_int_equal(next.status, 200);
}

static bool opens_n_times(void *ctx)
{
    return (*(int *)ctx)-- > 0;
}

/* The gate is asked once more when the connection stands, which may take half a minute and another leader to get there. */
static void test_gate_that_closes_while_it_connects(void **ctx)
{
    struct rig *r = *ctx;
    int times = 2;
    struct transport_gate gate = {opens_n_times, &times};
    struct http_request write = {.method = "POST",
                                 .path = "/api/v1/namespaces/ns/pods",
                                 .content_type = "application/json",
                                 .body = sv_from("{\"metadata\":{\"name\":\"a\"}}"),
                                 .gate = &gate};
    struct plain open = {0}, shut = {0};

    start_plain(r, &open, &write, false);
    rig_until(r->loop, plain_over, &open);
    assert_int_equal(open.status, 201);
    times = 1;
    fake_log_clear(r->server);
    start_plain(r, &shut, &write, false);
    rig_until(r->loop, plain_over, &shut);
    assert_int_equal(shut.status, 0);
    assert_int_equal(shut.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(shut.err.msg, "not sent"));
    fake_settle(r->server);
    assert_int_equal(fake_log_count(r->server, "POST", NULL), 0);
}

static bool all_over(void *ctx)
{
    struct plain *p = ctx;

    for (int i = 0; i < 100; i++)
        if (!p[i].over)
            return false;
    return true;
}

/* A crowd goes through a few connections, in order, each once. */
static void test_a_crowd(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request get = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 30000};
    static struct plain p[100];
    size_t n = 0;

    for (int i = 0; i < 100; i++) {
        p[i] = (struct plain){0};
        start_plain(r, &p[i], &get, false);
    }
    rig_until(r->loop, all_over, p);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(p[i].n_done, 1);
        assert_int_equal(p[i].status, 200);
    }
    assert_int_equal(fake_log_count(r->server, "LIST", "/api/v1/pods"), 100);
    const struct http_count *counts = http_counts(r->http, &n);
    assert_int_equal(n, 1);
    assert_string_equal(counts[0].method, "GET");
    assert_int_equal(counts[0].status, 200);
    assert_int_equal(counts[0].n, 100);
}

static bool eight_watches(void *ctx)
{
    return fake_open_watches(ctx) == 8;
}

/* Watches have connections of their own and never cost the others theirs. */
static void test_connections_are_kept_beside_watches(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request watch = {.method = "GET", .path = "/api/v1/pods?watch=true", .own_connection = true};
    struct http_request get = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 30000};
    static struct plain watches[8], p[100];

    for (int i = 0; i < 8; i++) {
        watches[i] = (struct plain){0};
        start_plain(r, &watches[i], &watch, true);
    }
    rig_until(r->loop, eight_watches, r->server);
    for (int crowd = 0; crowd < 2; crowd++) {
        for (int i = 0; i < 100; i++) {
            p[i] = (struct plain){0};
            start_plain(r, &p[i], &get, false);
        }
        rig_until(r->loop, all_over, p);
    }
    assert_in_range(fake_connections(r->server), 9, 16);
    for (int i = 0; i < 8; i++)
        transport_cancel(&r->api, watches[i].call);
}

/* A limit of 20 a second, 5 at once: 15 calls cannot be over sooner than half a second after the first. */
static void test_rate_limit(void **ctx)
{
    struct rig *r = *ctx;
    struct http_request get = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 30000};
    static struct plain p[100];
    struct err err;
    int64_t begin = loop_now_ms(r->loop);

    http_free(r->http);
    r->http = http_new(r->loop, &r->config, &(struct http_options){.qps = 20, .burst = 5}, &err);
    assert_non_null(r->http);
    r->api = http_transport(r->http);
    for (int i = 0; i < 100; i++)
        p[i] = (struct plain){.over = i >= 15};
    for (int i = 0; i < 15; i++)
        start_plain(r, &p[i], &get, false);
    rig_until(r->loop, all_over, p);
    assert_true(loop_now_ms(r->loop) - begin >= 450);
}

static void test_errors_name_the_request_but_no_secret(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;

    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_DROP_BEFORE});
    rig_call(r, GET_POD, &reply);
    assert_non_null(strstr(reply.err.msg, "GET /api/v1/namespaces/ns/pods/a: "));
    assert_null(strstr(reply.err.msg, "secret-token"));
}

/* Whoever can make the server send us elsewhere gets neither the token nor the object. */
static void test_redirects_are_not_followed(void **ctx)
{
    static const int codes[] = {301, 302, 303, 307, 308};
    struct rig *r = *ctx;
    struct fake_apiserver *elsewhere = fake_apiserver_start();
    char url[128];

    fake_put(elsewhere, "/api/v1/namespaces/ns/pods/a", "{}");
    snprintf(url, sizeof(url), "%s/api/v1/namespaces/ns/pods/a", fake_apiserver_url(elsewhere));
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"}}");
        const struct kube_request *const requests[] = {GET_POD, &create};
        for (size_t k = 0; k < ARRAY_LEN(requests); k++) {
            struct rig_reply reply;
            fake_plan_fault(r->server, &(struct fake_fault_plan){
                                           .fault = FAKE_STATUS, .status = codes[i], .location = url});
            rig_call(r, requests[k], &reply);
            if (reply.err.kind == ERR_NONE || fake_faults_done(r->server) != 1)
                fail_msg("%d: %d answers: %s", codes[i], fake_faults_done(r->server), reply.err.msg);
            rig_reply_release(&reply);
        }
    }
    assert_int_equal(fake_connections(elsewhere), 0);
    fake_apiserver_stop(elsewhere);
}

static void write_token(const char *path, const char *token)
{
    struct err err;

    assert_int_equal(fs_write_atomic(path, token, strlen(token), &err), 0);
}

static bool is_over(void *ctx)
{
    return ((struct rig_reply *)ctx)->over;
}

static void on_kube_reply(void *ctx, struct kube_reply *got)
{
    struct rig_reply *reply = ctx;

    reply->over = true;
    reply->status = got->status;
    if (got->err)
        reply->err = *got->err;
}

/* A 401 makes the token be read again: with a new one the request goes out once more, and nobody hears of it. */
static void test_token_is_read_again_after_401(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;
    struct fake_request q;
    struct err err;
    char path[64];

    snprintf(path, sizeof(path), "/tmp/test_http_token_%d", (int)getpid());
    write_token(path, "old");
    assert_int_equal(kube_secret_from_file(&r->config.token, path, &err), 0);
    r->config.read_ms = loop_now_ms(r->loop);
    write_token(path, "new\n");
    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 401});
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_NOT_FOUND);
    assert_true(fake_log_at(r->server, 0, &q));
    assert_string_equal(q.authorization, "Bearer old");
    assert_true(fake_log_at(r->server, 1, &q));
    assert_string_equal(q.authorization, "Bearer new");
    assert_false(fake_log_at(r->server, 2, &q));
    /* The same token again, and one that is refused as well: that is the answer. */
    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 401});
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_TRANSIENT);
    assert_int_equal(reply.status.reason, KUBE_REASON_UNAUTHORIZED);
    unlink(path);
}

/* Several left with the old token: the one that comes back first finds the new one for all of them. It is refused as well here,
 * which is the answer. */
static void test_all_that_left_with_the_old_token_go_again(void **ctx)
{
    enum { N = 6 };
    struct rig *r = *ctx;
    struct rig_reply replies[N] = {0};
    struct fake_request q;
    struct err err;
    char path[64];
    int logged = 0;

    snprintf(path, sizeof(path), "/tmp/test_http_token_%d", (int)getpid());
    write_token(path, "old");
    assert_int_equal(kube_secret_from_file(&r->config.token, path, &err), 0);
    r->config.read_ms = loop_now_ms(r->loop);
    write_token(path, "new");
    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_STATUS, .status = 401});
    for (int i = 0; i < N; i++)
        assert_non_null(kube_call_start(&r->api, GET_POD, on_kube_reply, &replies[i], &err));
    for (int i = 0; i < N; i++) {
        rig_until(r->loop, is_over, &replies[i]);
        assert_int_equal(replies[i].status.reason, KUBE_REASON_UNAUTHORIZED);
    }
    while (fake_log_at(r->server, logged, &q))
        logged++;
    assert_int_equal(logged, 2 * N);
    unlink(path);
}

static void test_servers_that_cannot_be(void **ctx)
{
    static const char *const urls[] = {"http://10.0.0.1:80", "http://example.com", "http://127.example.com",
                                       "https://:443",       "https://a:99999",    "x"};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        cleanup_kube_config struct kube_config c;
        struct err err;
        rig_config(&c, urls[i]);
        if (http_new(r->loop, &c, &(struct http_options){0}, &err))
            fail_msg("accepted %s", urls[i]);
        assert_int_equal(err.kind, ERR_INVALID);
    }
}

static void test_nobody_there(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;

    fake_apiserver_stop(r->server);
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_TRANSIENT);
    r->server = fake_apiserver_start();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_create_get_patch_delete),
        T(test_faults),
        T(test_timeouts),
        T(test_silence_takes_the_idle_connections_along),
        T(test_a_body_that_stalls),
        T(test_watch_goes_quiet),
        T(test_answer_over_its_limit),
        T(test_large_stream_is_whole),
        T(test_cancel),
        T(test_gate_that_closes_while_it_connects),
        T(test_a_crowd),
        T(test_connections_are_kept_beside_watches),
        T(test_rate_limit),
        T(test_errors_name_the_request_but_no_secret),
        T(test_redirects_are_not_followed),
        T(test_token_is_read_again_after_401),
        T(test_all_that_left_with_the_old_token_go_again),
        T(test_servers_that_cannot_be),
        T(test_nobody_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
