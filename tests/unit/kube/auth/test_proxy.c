/* test_proxy.c - NO_PROXY entry by entry, and which proxy the environment names. */
#include "kube/auth/proxy.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

static void test_bypass(void **ctx)
{
    static const struct {
        const char *no_proxy, *server;
        bool bypassed;
    } rows[] = {
        {"", "https://api.example.com", false},
        {NULL, "https://api.example.com", false},
        {"*", "https://api.example.com", true},
        {"a,*,b", "https://10.0.0.1", true},
        /* this machine itself never */
        {"", "https://localhost:6443", true},
        {"", "https://LOCALHOST", true},
        {"", "https://127.8.9.10:6443", true},
        {"", "https://[::1]:6443", true},
        {"", "https://[::ffff:127.0.0.1]", true},
        {"", "https://localhost.example.com", false},
        /* names */
        {"example.com", "https://example.com", true},
        {"example.com", "https://EXAMPLE.com:6443/path", true},
        {"example.com", "https://api.example.com", true},
        {"example.com", "https://badexample.com", false},
        {"EXAMPLE.COM", "https://api.example.com", true},
        {".example.com", "https://api.example.com", true},
        {".example.com", "https://example.com", false},
        {"*.example.com", "https://a.b.example.com", true},
        {"*.example.com", "https://example.com", false},
        {"*ample.com", "https://example.com", false},
        {"other, example.com ", "https://example.com", true},
        {",,", "https://example.com", false},
        /* with a port */
        {"example.com:6443", "https://example.com:6443", true},
        {"example.com:6443", "https://example.com", false},
        {"example.com:443", "https://example.com", true},
        {"example.com:80", "http://example.com", true},
        {":443", "https://example.com", false},
        /* addresses */
        {"10.0.0.1", "https://10.0.0.1:6443", true},
        {"10.0.0.1", "https://10.0.0.10", false},
        {"10.0.0.1:6443", "https://10.0.0.1:6443", true},
        {"10.0.0.1:6443", "https://10.0.0.1:443", false},
        {"::ffff:10.0.0.1", "https://10.0.0.1", true},
        {"fd00::1", "https://[fd00:0::1]:6443", true},
        {"[fd00::1]:6443", "https://[fd00::1]:6443", true},
        {"[fd00::1]:6443", "https://[fd00::1]", false},
        {"10.0.0.1", "https://10.0.0.1.example.com", false},
        /* networks */
        {"10.0.0.0/8", "https://10.96.0.1", true},
        {"10.0.0.0/8", "https://11.0.0.1", false},
        {"172.16.0.0/12", "https://172.31.255.255", true},
        {"172.16.0.0/12", "https://172.32.0.0", false},
        {"10.0.0.9/31", "https://10.0.0.8", true},
        {"10.0.0.9/32", "https://10.0.0.8", false},
        {"0.0.0.0/0", "https://8.8.8.8", true},
        {"0.0.0.0/0", "https://[fd00::1]", false},
        {"fd00::/8", "https://[fdff::1]", true},
        {"fd00::/8", "https://[fe00::1]", false},
        {"::/0", "https://10.0.0.1", false},
        {"10.0.0.0/33", "https://10.0.0.1", false},
        {"10.0.0.0/x", "https://10.0.0.1", false},
        {"10.0.0.0/8", "https://ten.example.com", false},
        {"10.0.0.0/8:6443", "https://10.0.0.1:6443", false},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (proxy_bypassed(rows[i].no_proxy, rows[i].server) != rows[i].bypassed)
            fail_msg("row %zu: NO_PROXY=%s %s", i, rows[i].no_proxy, rows[i].server);
}

static void test_urls(void **ctx)
{
    static const char *const good[] = {"http://p", "https://p:3128", "socks5://127.0.0.1:1080",
                                       "http://u:p%40w@p/", "http://[fd00::1]:3128"};
    static const char *const bad[] = {
        "",           "p:3128",      "ftp://p",     "socks4://p", "http://",
        "http://:80", "http://p:x",  "http://p:0",  "http://p q", "http://p:99999",
        "http://p\n", "socks5h://p", "unix:///sock"};
    struct err err;
    char shown[PROXY_SHOWN_BYTES];

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (proxy_check(good[i], &err) < 0)
            fail_msg("%s: %s", good[i], err.msg);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (proxy_check(bad[i], &err) == 0)
            fail_msg("accepted \"%s\"", bad[i]);
    assert_int_equal(proxy_check("ftp://me:secret@p", &err), -1);
    assert_non_null(strstr(err.msg, "ftp"));
    assert_null(strstr(err.msg, "secret"));
    proxy_shown("http://me:secret@p:3128/x", shown);
    assert_string_equal(shown, "http://p:3128");
}

static void test_environment(void **ctx)
{
    static const struct {
        const char *https_proxy, *no_proxy, *server, *want;
    } rows[] = {
        {NULL, NULL, "https://h", NULL},
        {"", "", "https://h", NULL},
        {"http://p:3128", NULL, "https://h", "http://p:3128"},
        {"p:3128", "", "https://h", "http://p:3128"},
        {"socks5://p", "10.0.0.0/8", "https://h", "socks5://p"},
        {"http://p:3128", "10.0.0.0/8", "https://10.96.0.1:443", NULL},
        {"http://p:3128", NULL, "https://127.0.0.1:6443", NULL},
        {"http://p:3128", NULL, "http://h", NULL},
        {"gopher://p", "h", "https://h", NULL}, /* not used, so not looked at */
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *got = NULL;
        struct err err;
        if (proxy_from_environment(rows[i].https_proxy, rows[i].no_proxy, rows[i].server, &got, &err) < 0)
            fail_msg("row %zu: %s", i, err.msg);
        if (rows[i].want ? !got || strcmp(got, rows[i].want) != 0 : got != NULL)
            fail_msg("row %zu: %s", i, got ? got : "none");
        free(got);
    }
    char *got = NULL;
    struct err err;
    assert_int_equal(proxy_from_environment("gopher://me:secret@p", NULL, "https://h", &got, &err), -1);
    assert_non_null(strstr(err.msg, "HTTPS_PROXY: expected http://"));
    assert_null(strstr(err.msg, "secret"));
    assert_null(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bypass),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
