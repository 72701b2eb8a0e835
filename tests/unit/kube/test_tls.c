/* test_tls.c - the transport believes only the authority it was given, and only under the right name. */
#include "common/fsutil.h"
#include "kube/http.h"
#include "rig.h"
#include "test.h"
#include "tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result {
    bool over;
    int status;
    struct err err;
};

static void on_done(void *ctx, const struct http_response *r, const struct err *err)
{
    struct result *out = ctx;

    out->over = true;
    out->status = r ? r->status : 0;
    if (err)
        out->err = *err;
}

static bool is_over(void *ctx)
{
    return ((struct result *)ctx)->over;
}

struct given {
    const char *ca, *client, *name;
    bool insecure;
};

/* GET / with these credentials. */
static struct result get(int port, struct given g)
{
    struct err err;
    struct result out = {0};
    char url[64], file[32];

    snprintf(url, sizeof(url), "https://127.0.0.1:%d", port);
    cleanup_kube_config struct kube_config c;
    rig_config(&c, url);
    c.insecure = g.insecure;
    c.tls_server_name = g.name ? strdup(g.name) : NULL;
    if (g.ca)
        assert_int_equal(kube_secret_from_file(&c.ca, g.ca, &err), 0);
    if (g.client) {
        snprintf(file, sizeof(file), "%s.crt", g.client);
        assert_int_equal(kube_secret_from_file(&c.client_cert, file, &err), 0);
        snprintf(file, sizeof(file), "%s.key", g.client);
        assert_int_equal(kube_secret_from_file(&c.client_key, file, &err), 0);
    }
    cleanup_loop struct loop *l = loop_new(clock_system(), &err);
    cleanup_http struct http *h = http_new(l, &c, &(struct http_options){0}, &err);
    struct transport t = http_transport(h);
    struct http_request req = {.method = "GET", .path = "/", .timeout_ms = 20000};
    assert_non_null(transport_start(&t, &req, &(struct http_handler){.ctx = &out, .done = on_done}, &err));
    rig_until(l, is_over, &out);
    return out;
}

static void test_authority_and_name(void **ctx)
{
    struct tls_server s = tls_serve("local", NULL);
    struct result r;

    (void)ctx;
    r = get(s.port, (struct given){.ca = "ca.crt"});
    assert_int_equal(r.status, 200);
    r = get(s.port, (struct given){.ca = "stranger.crt"});
    assert_int_equal(r.status, 0);
    assert_int_equal(r.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(r.err.msg, "certificate"));
    r = get(s.port, (struct given){0}); /* the system's authorities do not know it */
    assert_int_equal(r.status, 0);
    r = get(s.port, (struct given){.ca = "stranger.crt", .insecure = true});
    assert_int_equal(r.status, 200);
    r = get(s.port, (struct given){.ca = "ca.crt", .name = "api.example"});
    assert_int_equal(r.status, 0);
    tls_stop(&s);
}

static void test_server_name(void **ctx)
{
    struct tls_server s = tls_serve("server", NULL);

    (void)ctx;
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .name = "api.example"}).status, 200);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .name = "other.example"}).status, 0);
    tls_stop(&s);
}

static void test_client_certificate(void **ctx)
{
    static const char *const ask[] = {"-Verify", "1", "-CAfile", "ca.crt", "-verify_return_error", NULL};
    struct tls_server s = tls_serve("local", ask);

    (void)ctx;
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .client = "client"}).status, 200);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .client = "stranger"}).status, 0);
    tls_stop(&s);
}

static void test_old_protocols_are_refused(void **ctx)
{
    static const char *const old[] = {"-tls1_1", "-cipher", "ALL:@SECLEVEL=0", NULL};
    static const char *const enough[] = {"-tls1_2", NULL};
    struct tls_server s = tls_serve("local", old);

    (void)ctx;
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    tls_stop(&s);
    s = tls_serve("local", enough);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 200);
    tls_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_authority_and_name),
        cmocka_unit_test(test_server_name),
        cmocka_unit_test(test_client_certificate),
        cmocka_unit_test(test_old_protocols_are_refused),
    };

    return cmocka_run_group_tests(tests, tls_setup, tls_teardown);
}
