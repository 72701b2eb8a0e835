/* test_tls.c - the transport accepts only certificates of the configured authority, and only with the server's name. */
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

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
{
    struct result *out = ctx;

    out->over = true;
    out->status = r ? r->status : 0;
    if (err)
        out->err = *err;
}

struct given {
    const char *ca;
    const char *scheme;  /* NULL: https */
    const char *renewed; /* "old>new": after the file was read, this one becomes that one */
};

/* The first of so many parts of it. */
static void copy_part(const char *from, const char *to, size_t parts)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(fs_read(from, &text, &err), 0);
    assert_int_equal(fs_write_atomic(to, buf_str(&text), text.len / parts, &err), 0);
}

static void renew(const char *files)
{
    const char *between = strchr(files, '>');
    char old[32];

    snprintf(old, sizeof(old), "%.*s", (int)(between - files), files);
    copy_part(between + 1, old, 1);
}

/* GET / with this authority. */
static struct result get(int port, struct given g)
{
    struct err err;
    struct result out = {0};
    char url[64];

    snprintf(url, sizeof(url), "%s://127.0.0.1:%d", g.scheme ? g.scheme : "https", port);
    cleanup_kube_config struct kube_config c;
    rig_config(&c, url);
    if (g.ca)
        assert_int_equal(kube_credential_from_file(&c.ca, g.ca, &err), 0);
    if (g.renewed)
        renew(g.renewed);
    c.read_ms = INT64_MAX / 2; /* not yet time to look again */
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    cleanup_http struct http *h = http_new(l, &c, "test", &err);
    struct kube_transport t = http_transport(h);
    struct kube_http_request req = {.method = "GET", .path = "/", .timeout_ms = 600000};
    assert_non_null(
        kube_transport_start(&t, &req, &(struct kube_http_handler){.ctx = &out, .done = on_done}, &err));
    RIG_UNTIL(l, out.over);
    return out;
}

static void test_authority_and_name(void **ctx)
{
    struct tls_server s = tls_serve("local", NULL);
    struct result r;

    (void)ctx;
    r = get(s.port, (struct given){.ca = "ca.crt"});
    assert_int_equal(r.status, 200);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .scheme = "HTTPS"}).status, 200);
    r = get(s.port, (struct given){.ca = "stranger.crt"});
    assert_int_equal(r.status, 0);
    assert_int_equal(r.err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(r.err.msg, "certificate"));
    r = get(s.port, (struct given){0}); /* the system's authorities do not know it */
    assert_int_equal(r.status, 0);
    tls_stop(&s);
    s = tls_serve("server", NULL); /* it is for api.example */
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    tls_stop(&s);
}

/* The right name in all of them, and one thing wrong in each. */
static void test_bad_certificates(void **ctx)
{
    static const char *const chain[] = {"-cert_chain", "local.crt", NULL};
    static const struct {
        const char *cert;
        const char *const *extra;
        const char *word; /* of OpenSSL, for people */
    } rows[] = {
        {"expired", NULL, "expired"},
        {"self", NULL, "self-signed"},
        {"forged", chain, "CA certificate"},
        {"for-clients", NULL, "certificate purpose"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_server s = tls_serve(rows[i].cert, rows[i].extra);
        struct result r = get(s.port, (struct given){.ca = "ca.crt"});
        if (r.status != 0 || r.err.kind != ERR_TRANSIENT || !strstr(r.err.msg, rows[i].word))
            fail_msg("%s: %d %s", rows[i].cert, r.status, r.err.msg);
        tls_stop(&s);
    }
}

/* The server is not believed: the authority is read again, and the request goes. */
static void test_authority_is_read_again_when_tls_fails(void **ctx)
{
    struct tls_server s = tls_serve("local", NULL);

    (void)ctx;
    copy_part("stranger.crt", "now.crt", 1);
    assert_int_equal(get(s.port, (struct given){.ca = "now.crt", .renewed = "now.crt>ca.crt"}).status, 200);
    copy_part("stranger.crt", "now.crt", 1);
    assert_int_equal(get(s.port, (struct given){.ca = "now.crt", .renewed = "now.crt>self.crt"}).status, 0);
    copy_part("ca.crt", "now.crt", 2); /* read while it was written */
    assert_int_equal(get(s.port, (struct given){.ca = "now.crt", .renewed = "now.crt>ca.crt"}).status, 200);
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
        cmocka_unit_test(test_bad_certificates),
        cmocka_unit_test(test_authority_is_read_again_when_tls_fails),
        cmocka_unit_test(test_old_protocols_are_refused),
    };

    return cmocka_run_group_tests(tests, tls_setup, tls_teardown);
}
