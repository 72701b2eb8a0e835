/* test_http.c - the real transport against a real server that misbehaves. */
#include "rig.h"

#include "patience.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

struct plain {
    struct err err;
    int status;
    int n_done, n_chunks;
    size_t bytes;
    bool over, cut;
    struct rig *rig;
    struct kube_transfer *transfer;
    bool cancel_at_chunk, hold_at_chunk;
};

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
{
    struct plain *p = ctx;

    p->n_done++;
    p->over = true;
    p->status = r ? r->status : 0;
    p->cut = r && r->cut;
    p->bytes += r ? r->body.len : 0;
    if (err)
        p->err = *err;
}

static void on_chunk(void *ctx, struct sv bytes)
{
    struct plain *p = ctx;

    p->n_chunks++;
    p->bytes += bytes.len;
    if (p->hold_at_chunk)
        kube_transport_hold(&p->rig->api, p->transfer, true);
    if (!p->cancel_at_chunk)
        return;
    kube_transport_cancel(&p->rig->api, p->transfer);
    p->over = true;
}

static const struct kube_http_request GET = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 600000};
static const struct kube_http_request WATCH = {
    .method = "GET", .path = "/api/v1/pods?watch=true", .own_connection = true};

static bool plain_over(void *ctx)
{
    return ((struct plain *)ctx)->over;
}

static void start_plain(struct rig *r, struct plain *p, const struct kube_http_request *req, bool stream)
{
    struct kube_http_handler h = {.ctx = p, .chunk = stream ? on_chunk : NULL, .done = on_done};
    struct err err;

    *p = (struct plain){.rig = r, .cancel_at_chunk = p->cancel_at_chunk, .hold_at_chunk = p->hold_at_chunk};
    p->transfer = kube_transport_start(&r->api, req, &h, &err);
    assert_non_null(p->transfer);
}

/* One request to its end. */
static void run_plain(struct rig *r, struct plain *p, const struct kube_http_request *req)
{
    start_plain(r, p, req, false);
    rig_until(r->loop, plain_over, p);
}

/* Nothing comes, or headers and half a body, and then nothing: collected or in pieces, it ends. */
static void test_timeouts(void **ctx)
{
    static const enum fake_fault HOW[] = {FAKE_HANG_BEFORE, FAKE_STALL_BODY};
    struct rig *r = *ctx;
    struct kube_http_request whole = {.method = "GET", .path = "/api/v1/pods"};
    struct kube_http_request idle = {.method = "GET", .path = "/api/v1/pods"};
    int64_t ms = 200;

    for (size_t i = 0; i < ARRAY_LEN(HOW);) {
        struct plain a = {0}, b = {0};
        char want[32];
        whole.timeout_ms = idle.idle_timeout_ms = ms;
        fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = HOW[i]});
        start_plain(r, &a, &whole, false);
        start_plain(r, &b, &idle, true);
        rig_until(r->loop, plain_over, &a);
        rig_until(r->loop, plain_over, &b);
        assert_int_equal(a.err.kind, ERR_TIMEOUT);
        assert_int_equal(b.err.kind, ERR_TIMEOUT);
        snprintf(want, sizeof(want), "no data for %d ms", (int)ms);
        assert_non_null(strstr(b.err.msg, want));
        assert_int_equal(a.bytes, 0);
        if (HOW[i] == FAKE_STALL_BODY && !b.bytes)
            ms = patience_grow(ms); /* half a body did not come within that time */
        else
            assert_int_equal(b.bytes > 0, HOW[i++] == FAKE_STALL_BODY);
    }
}

static void pass_ms(struct rig *r, int64_t ms)
{
    int64_t until_ms = kube_loop_now_ms(r->loop) + ms;

    RIG_UNTIL(r->loop, kube_loop_now_ms(r->loop) >= until_ms);
}

/* Where one connection went silent the idle ones are not trusted either: the next request has one of its own. */
static void test_silence_takes_the_idle_connections_along(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request brief = {.method = "GET", .path = "/api/v1/pods", .timeout_ms = 100};
    struct plain p[4] = {0};

    for (int cancel = 0; cancel < 2; cancel++) {
        for (int i = 0; i < 3; i++)
            start_plain(r, &p[i], &GET, false);
        for (int i = 0; i < 3; i++)
            rig_until(r->loop, plain_over, &p[i]);
        pass_ms(r, 2100); /* libcurl counts how long they are idle in seconds */
        fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
        start_plain(r, &p[3], cancel ? &GET : &brief, false);
        if (cancel) { /* as the elector does */
            RIG_UNTIL(r->loop, fake_faults_done(r->server) > 0);
            kube_transport_cancel(&r->api, p[3].transfer);
        } else {
            rig_until(r->loop, plain_over, &p[3]);
            assert_int_equal(p[3].err.kind, ERR_TIMEOUT);
        }
        fake_plan_fault(r->server, NULL);
        int before = fake_connections(r->server);
        run_plain(r, &p[3], &GET);
        assert_int_equal(p[3].status, 200);
        assert_int_equal(fake_connections(r->server), before + 1);
    }
}

static void test_answer_over_its_limit(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request req = {
        .method = "GET", .path = "/api/v1/pods", .timeout_ms = 600000, .body_max_bytes = 50};
    struct plain p = {0};

    run_plain(r, &p, &req);
    assert_int_equal(p.err.kind, ERR_NONE); /* it would be as long the next time */
    assert_int_equal(p.status, 200);
    assert_true(p.cut);
    assert_int_equal(p.bytes, 50);
}

enum { HELD_MS = 600000 };

/* A stream that is held delivers nothing, keeps little, and continues where it was: the silence is not the peer's. */
static void test_hold(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request req = {.method = "GET",
                                    .path = "/api/v1/configmaps",
                                    .own_connection = true,
                                    .idle_timeout_ms = HELD_MS / 2};
    static char body[200000];
    struct plain stream = {0}, whole = {0};
    char path[80];

    size_t n = (size_t)snprintf(body, sizeof(body), "{\"data\":{\"x\":\"");
    memset(body + n, 'y', 100000);
    snprintf(body + n + 100000, sizeof(body) - n - 100000, "\"}}");
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "/api/v1/namespaces/ns/configmaps/c%d", i);
        rig_put(r, path, body);
    }
    run_plain(r, &whole, &req);
    stream.hold_at_chunk = true;
    start_plain(r, &stream, &req, true);
    RIG_UNTIL(r->loop, stream.n_chunks > 0);
    pass_ms(r, 200);
    assert_int_equal(stream.n_chunks, 1);
    assert_int_equal(stream.n_done, 0);
    for (int i = 0; i < 2; i++) {
        r->jumped_ms += HELD_MS;
        pass_ms(r, HELD_MS);
    }
    stream.hold_at_chunk = false;
    kube_transport_hold(&r->api, stream.transfer, false);
    rig_until(r->loop, plain_over, &stream);
    assert_int_equal(stream.err.kind, ERR_NONE);
    assert_int_equal(stream.bytes, whole.bytes);
}

static void test_cancel(void **ctx)
{
    struct rig *r = *ctx;
    struct plain inside = {.cancel_at_chunk = true}, outside = {0}, next = {0};

    fake_put(r->server, "/api/v1/namespaces/ns/pods/a", "{}");
    start_plain(r, &inside, &WATCH, true);
    rig_until(r->loop, plain_over, &inside);
    start_plain(r, &outside, &GET, false);
    kube_transport_cancel(&r->api, outside.transfer);
    run_plain(r, &next, &GET);
    assert_int_equal(inside.n_done + outside.n_done, 0);
    assert_int_equal(inside.n_chunks, 1);
    assert_int_equal(next.status, 200);
}

/* Whoever brings something is not idle, however long it has been watched. */
static void test_bytes_keep_a_watch(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request watch = {.method = "GET",
                                      .path = "/api/v1/pods?watch=true",
                                      .idle_timeout_ms = HELD_MS,
                                      .own_connection = true};
    struct plain p = {0};
    char path[80];

    start_plain(r, &p, &watch, true);
    for (int i = 0; i < 3; i++) {
        p.bytes = 0;
        snprintf(path, sizeof(path), "/api/v1/namespaces/ns/pods/p%d", i);
        rig_put(r, path, "{}");
        RIG_UNTIL(r->loop, p.bytes > 0);
        r->jumped_ms += HELD_MS * 2 / 3;
    }
    pass_ms(r, 1);
    assert_int_equal(p.n_done, 0);
    kube_transport_cancel(&r->api, p.transfer);
}

static bool opens_n_times(void *ctx)
{
    return (*(int *)ctx)-- > 0;
}

/* The gate is checked once more when the connection is established, which may take half a minute and another leader to get there. */
static void test_gate_that_closes_while_it_connects(void **ctx)
{
    struct rig *r = *ctx;
    int times = 2;
    struct kube_transport_gate gate = {opens_n_times, &times};
    struct kube_http_request write = {.method = "POST",
                                      .path = "/api/v1/namespaces/ns/pods",
                                      .content_type = "application/json",
                                      .body = sv_from("{\"metadata\":{\"name\":\"a\"}}"),
                                      .gate = &gate};
    struct plain open = {0}, shut = {0};

    run_plain(r, &open, &write);
    assert_int_equal(open.status, 201);
    times = 1;
    fake_log_clear(r->server);
    run_plain(r, &shut, &write);
    assert_int_equal(shut.status, 0);
    assert_int_equal(shut.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(shut.err.msg, "not sent"));
    fake_settle(r->server);
    assert_int_equal(fake_log_count(r->server, "POST", NULL), 0);
}

static bool all_over(const struct plain *p)
{
    for (int i = 0; i < 100; i++)
        if (!p[i].over)
            return false;
    return true;
}

/* A crowd goes through a few connections, each request once. Watches have connections of their own and never cost the others
 * theirs. */
static void test_connections_are_kept_beside_watches(void **ctx)
{
    struct rig *r = *ctx;
    static struct plain watches[8], p[100];
    size_t n = 0;

    for (int i = 0; i < 8; i++)
        start_plain(r, &watches[i], &WATCH, true);
    RIG_UNTIL(r->loop, fake_open_watches(r->server) == 8);
    for (int crowd = 0; crowd < 2; crowd++) {
        for (int i = 0; i < 100; i++)
            start_plain(r, &p[i], &GET, false);
        RIG_UNTIL(r->loop, all_over(p));
        for (int i = 0; i < 100; i++) {
            assert_int_equal(p[i].n_done, 1);
            assert_int_equal(p[i].status, 200);
        }
    }
    assert_int_equal(fake_log_count(r->server, "LIST", "/api/v1/pods"), 200);
    const struct http_count *counts = http_counts(r->http, &n);
    assert_int_equal(n, 1); /* the watches have no answer yet */
    assert_string_equal(counts[0].method, "GET");
    assert_int_equal(counts[0].status, 200);
    assert_int_equal(counts[0].n, 200);
    assert_in_range(fake_connections(r->server), 9, 16);
    for (int i = 0; i < 8; i++)
        kube_transport_cancel(&r->api, watches[i].transfer);
}

/* After a crowd of 40 at once, connections that nobody needs are closed, one with each answer. */
static void test_a_crowds_connections_are_closed_afterwards(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request urgent = {
        .method = "GET", .path = "/api/v1/pods", .timeout_ms = 600000, .urgent = true};
    static struct plain p[100];
    unsigned ports[100];

    for (int i = 0; i < 100; i++)
        p[i] = (struct plain){.over = i >= 40};
    for (int i = 0; i < 40; i++)
        start_plain(r, &p[i], &urgent, false);
    RIG_UNTIL(r->loop, all_over(p));
    assert_in_range(fake_connections(r->server), 20, 40); /* it was one */
    int came = fake_connections(r->server);
    for (int i = 0; i < 40; i++)
        run_plain(r, &p[0], &GET);
    assert_in_range(rig_client_ports(r, ports, 100), 1, HTTP_SLOTS + HTTP_RESERVED + 1);
    assert_int_equal(fake_connections(r->server), came); /* and what was used stayed open */
}

enum { SLOW = 8, OF_EACH = 12, QUICK = 100 };

struct neighbours {
    struct rig *rig;
    struct plain slow[SLOW][OF_EACH], quick[QUICK];
    int strikes;
};

/* Eight namespaces whose writes are not answered have all that such namespaces may have: 4 that gave their places up each,
 * and half of the 8 places. Another namespace's requests are answered meanwhile, over connections that are kept. */
static void test_slow_namespaces_hold_up_nobody_else(void **ctx)
{
    static struct neighbours n;
    char ns[16], path[64];
    struct kube_http_request slow = {.method = "DELETE", .path = path, .ns = ns, .timeout_ms = 600000};
    struct kube_http_request quick = {
        .method = "GET", .path = "/api/v1/namespaces/quick/pods", .ns = "quick", .timeout_ms = 600000};

    n = (struct neighbours){.rig = *ctx, .strikes = SLOW * 4};
    fake_plan_fault(n.rig->server,
                    &(struct fake_fault_plan){.path_part = "/slow-", .fault = FAKE_HANG_BEFORE});
    for (int i = 0; i < SLOW * OF_EACH; i++) {
        snprintf(ns, sizeof(ns), "slow-%d", i / OF_EACH);
        snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods", ns);
        start_plain(n.rig, &n.slow[i / OF_EACH][i % OF_EACH], &slow, false);
    }
    RIG_UNTIL(n.rig->loop, fake_faults_done(n.rig->server) >= n.strikes);
    int before = fake_connections(n.rig->server);
    for (int i = 0; i < QUICK; i++)
        start_plain(n.rig, &n.quick[i], &quick, false);
    RIG_UNTIL(n.rig->loop, all_over(n.quick));
    for (int i = 0; i < QUICK; i++)
        assert_int_equal(n.quick[i].status, 200);
    for (int i = 0; i < SLOW * OF_EACH; i++)
        assert_false(n.slow[i / OF_EACH][i % OF_EACH].over);
    assert_in_range(fake_faults_done(n.rig->server), SLOW * 4, SLOW * 4 + 4);
    assert_in_range(fake_connections(n.rig->server) - before, 1, 8 + 4);
    fake_plan_fault(n.rig->server, NULL);
}

/* Requests with `later` are sent after the others, though they came before most of them. */
static void test_later_goes_behind(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request get = GET;
    struct kube_http_request later = {
        .method = "GET", .path = "/api/v1/events", .ns = "b", .timeout_ms = 600000, .later = true};
    static struct plain p[100];
    struct plain last = {0};
    struct fake_request asked;

    for (int i = 0; i < 100; i++) {
        get.ns = i % 2 ? "a" : "c";
        start_plain(r, &p[i], &get, false);
        if (i == 20)
            start_plain(r, &last, &later, false);
    }
    rig_until(r->loop, plain_over, &last);
    RIG_UNTIL(r->loop, all_over(p));
    int at = 0;
    while (fake_log_at(r->server, at, &asked) && !strstr(asked.path, "events"))
        at++;
    assert_in_range(at, 100 - 9, 100);
}

/* A token is sent to the server only, whatever the environment contains. */
static void test_no_proxy_of_the_environment(void **ctx)
{
    struct rig *r = *ctx;
    struct plain p = {0};

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("all_proxy", "http://127.0.0.1:1", 1);
    run_plain(r, &p, &GET);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    assert_int_equal(p.status, 200);
}

static void test_servers_that_cannot_be(void **ctx)
{
    char urls[] =
        "http://10.0.0.1:80 http://example.com http://127.example.com https://:443 https://a:99999 x "
        "ftp://127.0.0.1:21 ftps://localhost localhost:8001 https://a?b=c https://a#b https://a/# unix: "
        "file:///run/s";
    struct rig *r = *ctx;

    for (const char *url = strtok(urls, " "); url; url = strtok(NULL, " ")) {
        cleanup_kube_config struct kube_config c;
        struct err err;
        rig_config(&c, url);
        if (http_new(r->loop, &c, "test", &err))
            fail_msg("accepted %s", url);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, strncmp(url, "http:", 5) == 0 ? "plain http is allowed only to this machine"
                                                           : "127.0.0.1:PORT or unix:SOCKET"))
            fail_msg("%s", err.msg);
    }
}

/* The address stands in the log; so does the message about it. */
static void test_a_password_in_the_address_is_refused(void **ctx)
{
    static const char *const URLS[] = {"https://user:hunter2@127.0.0.1", "htps://user:hunter2@127.0.0.1",
                                       "user:hunter2@127.0.0.1:6443",    "https://user:hunter2 @127.0.0.1",
                                       "ftp://user:hunter2@127.0.0.1",   "https://user:hunter2@"};
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(URLS); i++) {
        cleanup_kube_config struct kube_config c;
        struct err err;
        rig_config(&c, URLS[i]);
        assert_null(http_new(r->loop, &c, "test", &err));
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, "token") || strstr(err.msg, "hunter2"))
            fail_msg("%s: %s", URLS[i], err.msg);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_timeouts),
        T(test_silence_takes_the_idle_connections_along),
        T(test_answer_over_its_limit),
        cmocka_unit_test_setup_teardown(test_hold, rig_setup_jumps, rig_teardown),
        cmocka_unit_test_setup_teardown(test_bytes_keep_a_watch, rig_setup_jumps, rig_teardown),
        T(test_cancel),
        T(test_gate_that_closes_while_it_connects),
        T(test_connections_are_kept_beside_watches),
        T(test_a_crowds_connections_are_closed_afterwards),
        cmocka_unit_test_setup_teardown(test_slow_namespaces_hold_up_nobody_else, rig_setup_fast,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(test_later_goes_behind, rig_setup_slow, rig_teardown),
        T(test_no_proxy_of_the_environment),
        T(test_servers_that_cannot_be),
        T(test_a_password_in_the_address_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
