/* test_config.c - where a configuration is looked for: in a pod, in KUBECONFIG, at home; and the proxy of the environment. */
#include "kube/auth/config.h"

#include "folder.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_account(void)
{
    folder_write("token", "tok-1\n");
    folder_write("ca.crt", "CA");
    folder_write("namespace", "operators\n");
}

static void test_in_cluster(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_account();
    assert_int_equal(kube_config_in_cluster(&c, "10.0.0.1", "443", folder_root(), &err), 0);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.namespace_name, "operators");
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    kube_config_release(&c);
    assert_int_equal(kube_config_in_cluster(&c, "fd00::1", "6443", folder_root(), &err), 0);
    assert_string_equal(c.server, "https://[fd00::1]:6443");
}

static void test_in_cluster_refused(void **ctx)
{
    static const struct {
        const char *host, *port, *broken_file, *content, *names;
        enum err_kind kind;
    } rows[] = {
        {NULL, "443", NULL, NULL, "KUBERNETES_SERVICE_HOST", ERR_NOT_FOUND},
        {"h", NULL, NULL, NULL, "KUBERNETES_SERVICE_PORT", ERR_NOT_FOUND},
        {"h", "0", NULL, NULL, "KUBERNETES_SERVICE_PORT: expected 1..65535", ERR_INVALID},
        {"h", "443x", NULL, NULL, "KUBERNETES_SERVICE_PORT", ERR_INVALID},
        {"h/@evil", "443", NULL, NULL, "KUBERNETES_SERVICE_HOST", ERR_INVALID},
        {"h", "443", "token", "", "token", ERR_INVALID},
        {"h", "443", "token", "a\r\nX-Header: 1", "token", ERR_INVALID},
        {"h", "443", "token", " \n", "token", ERR_INVALID},
        {"h", "443", "ca.crt", "", "ca.crt", ERR_INVALID},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_config c = {0};
        struct err err;
        write_account();
        if (rows[i].broken_file)
            folder_write(rows[i].broken_file, rows[i].content);
        assert_int_equal(kube_config_in_cluster(&c, rows[i].host, rows[i].port, folder_root(), &err), -1);
        if (err.kind != rows[i].kind || !strstr(err.msg, rows[i].names))
            fail_msg("row %zu: %s: %s", i, err_kind_name(err.kind), err.msg);
        assert_null(c.server);
    }
    struct kube_config c = {0};
    struct err err;
    write_account();
    unlink(folder_path("ca.crt"));
    assert_int_equal(kube_config_in_cluster(&c, "h", "1", folder_root(), &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* HTTPS_PROXY goes for what `find` finds, unless NO_PROXY has the server; a kubeconfig's proxy-url comes before it. */
static void test_proxy_of_the_environment(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    unsetenv("https_proxy");
    unsetenv("no_proxy");
    folder_write("config", KUBECONFIG("server: 'https://10.1.2.3:6443'", ""));
    setenv("HTTPS_PROXY", "proxy:3128", 1);
    setenv("NO_PROXY", "10.9.0.0/16", 1);
    assert_int_equal(kube_config_find(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(c.environment_proxy, "http://proxy:3128");
    assert_null(c.proxy_url);
    kube_config_release(&c);
    setenv("NO_PROXY", "10.1.0.0/16", 1);
    assert_int_equal(kube_config_find(&c, folder_path("config"), NULL, &err), 0);
    assert_null(c.environment_proxy);
    kube_config_release(&c);
    unsetenv("NO_PROXY");
    setenv("no_proxy", "10.1.2.3", 1);
    assert_int_equal(kube_config_find(&c, folder_path("config"), NULL, &err), 0);
    assert_null(c.environment_proxy);
    kube_config_release(&c);
    unsetenv("no_proxy");
    setenv("HTTPS_PROXY", "gopher://p", 1);
    assert_int_equal(kube_config_find(&c, folder_path("config"), NULL, &err), -1);
    assert_non_null(strstr(err.msg, "HTTPS_PROXY"));
    assert_null(c.server);
    unsetenv("HTTPS_PROXY");
    setenv("https_proxy", "socks5://p", 1);
    assert_int_equal(kube_config_find(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(c.environment_proxy, "socks5://p");
    unsetenv("https_proxy");
}

static void test_find(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    unsetenv("KUBERNETES_SERVICE_HOST");
    folder_write("config", KUBECONFIG("server: 'https://from-env'", ""));
    setenv("KUBECONFIG", folder_path("config"), 1);
    assert_int_equal(kube_config_find(&c, NULL, NULL, &err), 0);
    assert_string_equal(c.server, "https://from-env");
    kube_config_release(&c);
    setenv("KUBECONFIG", "/nowhere/a:/nowhere/b", 1);
    assert_int_equal(kube_config_find(&c, NULL, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "KUBECONFIG: \"/nowhere/a:/nowhere/b\""));
    assert_int_equal(kube_config_find(&c, folder_path("config"), NULL, &err),
                     0); /* what is asked for comes first */
    kube_config_release(&c);
    unsetenv("KUBECONFIG");
    setenv("HOME", folder_root(), 1);
    assert_int_equal(kube_config_find(&c, NULL, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "not in a pod"));
    setenv("KUBERNETES_SERVICE_HOST", "h", 1);
    setenv("KUBERNETES_SERVICE_PORT", "bad", 1);
    /* A pod's account has no contexts. */
    assert_int_equal(kube_config_find(&c, NULL, "c1", &err), -1);
    assert_non_null(strstr(err.msg, ".kube/config"));
    assert_int_equal(kube_config_find(&c, folder_path("config"), "lost", &err), -1);
    assert_non_null(strstr(err.msg, "nowhere"));
    assert_int_equal(kube_config_find(&c, NULL, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "KUBERNETES_SERVICE_PORT"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        T(test_in_cluster),
        T(test_in_cluster_refused),
        T(test_proxy_of_the_environment),
        T(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
