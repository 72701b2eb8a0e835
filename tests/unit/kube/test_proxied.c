/* test_proxied.c - through proxies: what they get to see, whose names they look up, whom we believe. */
#include "rig.h"
#include "test.h"
#include "tests/fakes/proxy.h"
#include "tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GET_POD (&(struct kube_request){.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "a"})

/* A transport of its own with this configuration, which it takes. */
static struct rig open_rig(struct kube_config *config)
{
    struct rig r = {.config = *config};
    struct err err;

    *config = (struct kube_config){0};
    r.loop = kube_loop_new(clock_system(), &err);
    return r;
}

static struct rig_reply get(struct rig *r)
{
    struct rig_reply reply;
    struct err err;

    r->http = http_new(r->loop, &r->config, "test", &err);
    if (!r->http)
        fail_msg("%s", err.msg);
    r->api = http_transport(r->http);
    rig_call(r, GET_POD, &reply);
    rig_reply_release(&reply);
    http_free(r->http);
    return reply;
}

static void close_rig(struct rig *r)
{
    kube_loop_free(r->loop);
    kube_config_release(&r->config);
}

static struct fake_apiserver *start_server(struct kube_config *config)
{
    struct fake_apiserver *s = fake_apiserver_start();

    fake_put(s, "/api/v1/namespaces/ns/pods/a", "{}");
    rig_config(config, fake_apiserver_url(s));
    return s;
}

static char *proxy_url(const char *scheme, struct fake_proxy *p)
{
    char *url = NULL;

    if (asprintf(&url, "%s127.0.0.1:%d", scheme, fake_proxy_port(p)) < 0)
        abort();
    return url;
}

/* A CONNECT tunnel: the proxy sees where to, and its own credentials; the token only goes through. */
static void test_http_proxy(void **ctx)
{
    struct kube_config config;
    struct fake_apiserver *s = start_server(&config);
    struct fake_proxy *p = fake_proxy_start(false);
    struct fake_proxy_log log;

    (void)ctx;
    config.proxy_url = proxy_url("http://me:pass%40word@", p);
    struct rig r = open_rig(&config);
    struct rig_reply reply = get(&r);
    if (reply.err.kind != ERR_NONE)
        fail_msg("%s", reply.err.msg);
    fake_proxy_look(p, &log);
    assert_int_equal(log.tunnels, 1);
    assert_string_equal(log.target, strstr(fake_apiserver_url(s), "127"));
    assert_non_null(strstr(log.head, "Proxy-Authorization: Basic bWU6cGFzc0B3b3Jk\r\n")); /* me:pass@word */
    assert_null(strstr(log.head, "Bearer"));
    assert_non_null(strstr(log.sent, "GET /api/v1/namespaces/ns/pods/a HTTP/1.1\r\n"));
    assert_non_null(strstr(log.sent, "Authorization: Bearer secret-token\r\n"));
    assert_null(strstr(log.sent, "Proxy-Authorization"));
    close_rig(&r);
    fake_proxy_stop(p);
    fake_apiserver_stop(s);
}

/* Seen on the wire: basic authentication and impersonation. */
static void test_who_we_say_we_are(void **ctx)
{
    static const char *lines[] = {"Impersonate-User: jane", "Impersonate-Group: a", "Impersonate-Group: b"};
    struct kube_config config;
    struct fake_apiserver *s = start_server(&config);
    struct fake_proxy *p = fake_proxy_start(false);
    struct fake_proxy_log log;
    struct err err;

    (void)ctx;
    kube_secret_release(&config.token);
    config.username = strdup("Aladdin");
    assert_int_equal(kube_secret_from_text(&config.password, "open sesame", &err), 0);
    config.as = (struct impersonate){lines, ARRAY_LEN(lines)};
    config.environment_proxy = proxy_url("http://", p);
    struct rig r = open_rig(&config);
    assert_int_equal(get(&r).err.kind, ERR_NONE);
    fake_proxy_look(p, &log);
    assert_null(strstr(log.head, "Proxy-Authorization"));
    assert_null(strstr(log.head, "Impersonate"));
    assert_non_null(strstr(log.sent, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
    assert_non_null(strstr(log.sent, "Impersonate-User: jane\r\n"));
    assert_non_null(strstr(log.sent, "Impersonate-Group: a\r\nImpersonate-Group: b\r\n"));
    close_rig(&r);
    fake_proxy_stop(p);
    fake_apiserver_stop(s);
}

static void test_a_proxy_that_refuses(void **ctx)
{
    struct kube_config config;
    struct fake_apiserver *s = start_server(&config);
    struct fake_proxy *p = fake_proxy_start(false);
    struct rig_reply reply;
    char shown[100];

    (void)ctx;
    config.proxy_url = proxy_url("http://me:top-secret@", p);
    snprintf(shown, sizeof(shown), "through the proxy http://127.0.0.1:%d: ", fake_proxy_port(p));
    struct rig r = open_rig(&config);
    fake_proxy_refuse(p, true);
    reply = get(&r);
    assert_int_equal(reply.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(reply.err.msg, shown));
    assert_non_null(strstr(reply.err.msg, "407"));
    assert_null(strstr(reply.err.msg, "top-secret"));
    fake_proxy_refuse(p, false);
    assert_int_equal(get(&r).err.kind, ERR_NONE);
    fake_proxy_stop(p); /* nobody there any more */
    reply = get(&r);
    assert_int_equal(reply.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(reply.err.msg, shown));
    assert_int_equal(fake_log_count(s, "GET", NULL), 1); /* and never around it */
    close_rig(&r);
    fake_apiserver_stop(s);
}

/* libcurl looks at the environment by itself; what goes is the configuration. */
static void test_environment_is_not_looked_at_again(void **ctx)
{
    struct kube_config config;
    struct fake_apiserver *s = start_server(&config);
    struct fake_proxy *p = fake_proxy_start(false);
    struct fake_proxy_log log;
    char *other = proxy_url("http://", p);

    (void)ctx;
    setenv("http_proxy", other, 1);
    setenv("ALL_PROXY", other, 1);
    struct rig r = open_rig(&config);
    assert_int_equal(get(&r).err.kind, ERR_NONE);
    fake_proxy_look(p, &log);
    assert_int_equal(log.tunnels, 0);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    setenv("NO_PROXY", "*", 1);
    r.config.proxy_url = other;
    assert_int_equal(get(&r).err.kind, ERR_NONE);
    fake_proxy_look(p, &log);
    assert_int_equal(log.tunnels, 1); /* proxy-url knows no exceptions, as for kubectl */
    unsetenv("NO_PROXY");
    close_rig(&r);
    fake_proxy_stop(p);
    fake_apiserver_stop(s);
}

static void test_proxies_that_cannot_be(void **ctx)
{
    static const char *const rows[][3] = {
        {"http://127.0.0.1:80", "http://proxy.example:3128", "plain http to the server"},
        {"https://h", "http://exa mple:3128", "not a URL"},
        {"https://h", "http://p:99999", "not a URL"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_kube_config struct kube_config c;
        struct err err;
        cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
        rig_config(&c, rows[i][0]);
        c.proxy_url = strdup(rows[i][1]);
        assert_null(http_new(l, &c, NULL, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, rows[i][2]))
            fail_msg("row %zu: %s", i, err.msg);
    }
}

/* --- TLS ------------------------------------------------------------------------------------------------ */

static struct kube_config tls_config(const char *server, int port)
{
    struct kube_config c;
    struct err err;
    char url[100];

    snprintf(url, sizeof(url), "https://%s:%d", server, port);
    rig_config(&c, url);
    assert_int_equal(kube_secret_from_file(&c.ca, "ca.crt", &err), 0);
    return c;
}

/* Names are the proxy's to look up, and the certificate is still the server's. openssl's page is no JSON: that it came
 * is what is to be seen. */
static void test_socks_and_connect_by_name(void **ctx)
{
    static const char *const schemes[] = {"socks5://", "http://"};
    struct tls_server s = tls_serve("server", NULL);

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        struct fake_proxy *p = fake_proxy_start(i == 0);
        struct fake_proxy_log log;
        char want[100];

        struct kube_config config = tls_config("api.example", s.port);
        config.proxy_url = proxy_url(schemes[i], p);
        struct rig r = open_rig(&config);
        struct rig_reply reply = get(&r);
        if (reply.status.code != 200)
            fail_msg("%s: %s", schemes[i], reply.err.msg);
        fake_proxy_look(p, &log);
        snprintf(want, sizeof(want), "api.example:%d", s.port);
        assert_string_equal(log.target, want);
        assert_null(strstr(log.sent, "secret-token"));
        close_rig(&r);

        config = tls_config("other.example", s.port); /* the proxy goes there, the certificate does not fit */
        config.proxy_url = proxy_url(schemes[i], p);
        r = open_rig(&config);
        reply = get(&r);
        assert_int_equal(reply.err.kind, ERR_TRANSIENT);
        assert_int_equal(reply.status.code, 0);
        r.config.tls_server_name = strdup("api.example"); /* until the kubeconfig says which name it shows */
        assert_int_equal(get(&r).status.code, 200);
        fake_proxy_look(p, &log);
        assert_int_equal(strncmp(log.target, "other.example:", 14), 0);
        close_rig(&r);
        fake_proxy_stop(p);
    }
    tls_stop(&s);
}

/* TLS to the proxy, and inside of it plain http to a server beside it. */
static void test_https_proxy(void **ctx)
{
    static const char *const certs[] = {"local", "server"}; /* the second one shows another name */
    struct fake_proxy *p = fake_proxy_start(false);
    struct fake_proxy_log log;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(certs); i++) {
        struct kube_config config;
        struct err err;
        struct fake_apiserver *s = start_server(&config);
        struct tls_server outer = tls_wrap(certs[i]);
        fake_proxy_adopt(p, outer.inner);
        assert_int_equal(kube_secret_from_file(&config.ca, "ca.crt", &err), 0);
        assert_true(asprintf(&config.proxy_url, "https://127.0.0.1:%d", outer.port) > 0);
        struct rig r = open_rig(&config);
        struct rig_reply reply = get(&r);
        if (i == 0 && reply.err.kind != ERR_NONE)
            fail_msg("%s", reply.err.msg);
        if (i == 1)
            assert_int_equal(reply.err.kind, ERR_TRANSIENT);
        fake_proxy_look(p, &log);
        assert_int_equal(log.tunnels, 1); /* nothing went to the wrong one */
        close_rig(&r);
        tls_stop(&outer);
        fake_apiserver_stop(s);
    }
    fake_proxy_stop(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_proxy),
        cmocka_unit_test(test_who_we_say_we_are),
        cmocka_unit_test(test_a_proxy_that_refuses),
        cmocka_unit_test(test_environment_is_not_looked_at_again),
        cmocka_unit_test(test_proxies_that_cannot_be),
        cmocka_unit_test(test_socks_and_connect_by_name),
        cmocka_unit_test(test_https_proxy),
    };

    return cmocka_run_group_tests(tests, tls_setup, tls_teardown);
}
