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

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
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
    const char *renewed; /* "old>new": after the files were read, this one becomes that one */
    bool insecure;
    const struct exec_spec *plugin;
};

static void copy_file(const char *from, const char *to)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(fs_read(from, &text, &err), 0);
    assert_int_equal(fs_write_atomic(to, buf_str(&text), text.len, &err), 0);
}

/* Its first half. */
static void cut_file(const char *from, const char *to)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(fs_read(from, &text, &err), 0);
    assert_int_equal(fs_write_atomic(to, buf_str(&text), text.len / 2, &err), 0);
}

static void renew(const char *files)
{
    const char *between = strchr(files, '>');
    char old[32];

    snprintf(old, sizeof(old), "%.*s", (int)(between - files), files);
    copy_file(between + 1, old);
}

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
    if (g.plugin) {
        kube_secret_release(&c.token);
        c.exec = *g.plugin;
    }
    if (g.ca)
        assert_int_equal(kube_secret_from_file(&c.ca, g.ca, &err), 0);
    if (g.client) {
        snprintf(file, sizeof(file), "%s.crt", g.client);
        assert_int_equal(kube_secret_from_file(&c.client_cert, file, &err), 0);
        snprintf(file, sizeof(file), "%s.key", g.client);
        assert_int_equal(kube_secret_from_file(&c.client_key, file, &err), 0);
    }
    if (g.renewed)
        renew(g.renewed);
    c.read_ms = INT64_MAX / 2; /* not yet time to look again */
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);
    cleanup_http struct http *h = http_new(l, &c, NULL, &err);
    struct kube_transport t = http_transport(h);
    struct kube_http_request req = {.method = "GET", .path = "/", .timeout_ms = 20000};
    assert_non_null(
        kube_transport_start(&t, &req, &(struct kube_http_handler){.ctx = &out, .done = on_done}, &err));
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

/* The right name in all of them, and one thing wrong in each; with -k, as it were, each server does answer. */
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
        assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .insecure = true}).status, 200);
        tls_stop(&s);
    }
}

/* The server is not believed, or the key is another certificate's: the files are read again, and the request goes. */
static void test_files_are_read_again_when_tls_fails(void **ctx)
{
    static const char *const ask[] = {"-Verify", "1", "-CAfile", "ca.crt", "-verify_return_error", NULL};
    struct tls_server s = tls_serve("local", NULL);

    (void)ctx;
    copy_file("stranger.crt", "now.crt");
    assert_int_equal(get(s.port, (struct given){.ca = "now.crt", .renewed = "now.crt>ca.crt"}).status, 200);
    copy_file("stranger.crt", "now.crt");
    assert_int_equal(get(s.port, (struct given){.ca = "now.crt", .renewed = "now.crt>self.crt"}).status, 0);
    cut_file("ca.crt", "now.crt"); /* read while it was written */
    assert_int_equal(get(s.port, (struct given){.ca = "now.crt", .renewed = "now.crt>ca.crt"}).status, 200);
    tls_stop(&s);

    s = tls_serve("local", ask);
    copy_file("client.crt", "half.crt");
    copy_file("stranger.key", "half.key");
    assert_int_equal(
        get(s.port, (struct given){.ca = "ca.crt", .client = "half", .renewed = "half.key>client.key"})
            .status,
        200);
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

/* A plugin's certificate and key are those of the connection. */
static void test_certificate_of_a_plugin(void **ctx)
{
    static const char *const ask[] = {"-Verify", "1", "-CAfile", "ca.crt", "-verify_return_error", NULL};
    static const char *const argv[] = {"sh", "-c", "sh $0 $WHO", "answer.sh", NULL};
    static const char *const env[2][2] = {{"WHO=client", NULL}, {"WHO=stranger", NULL}};
    static const char script[] =
        "pem() { awk '{printf \"%s\\\\n\", $0}' \"$1\"; }\n"
        "printf "
        "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{'\n"
        "printf '\"clientCertificateData\":\"%s\",\"clientKeyData\":\"%s\"}}' \"$(pem $1.crt)\" \"$(pem "
        "$1.key)\"\n";
    struct tls_server s = tls_serve("local", ask);
    struct err err;

    (void)ctx;
    assert_int_equal(fs_write_atomic("answer.sh", script, strlen(script), &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(env); i++) {
        struct exec_spec plugin = {argv, env[i], "client.authentication.k8s.io/v1", "", false};
        struct result r = get(s.port, (struct given){.ca = "ca.crt", .plugin = &plugin});
        if (r.status != (i == 0 ? 200 : 0))
            fail_msg("%s: %d %s", env[i][0], r.status, r.err.msg);
        assert_null(strstr(r.err.msg, "credential plugin")); /* it is the server that does not want it */
    }
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
        cmocka_unit_test(test_files_are_read_again_when_tls_fails),
        cmocka_unit_test(test_server_name),
        cmocka_unit_test(test_client_certificate),
        cmocka_unit_test(test_certificate_of_a_plugin),
        cmocka_unit_test(test_old_protocols_are_refused),
    };

    return cmocka_run_group_tests(tests, tls_setup, tls_teardown);
}
