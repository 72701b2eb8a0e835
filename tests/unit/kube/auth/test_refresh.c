/* test_refresh.c - what is replaced while we run: believed when it is still ours, and the old bytes stay when it is not. */
#include "kube/auth/config.h"

#include "folder.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

static void write_account(void)
{
    folder_write("token", "tok-1\n");
    folder_write("ca.crt", "CA");
    folder_write("namespace", "operators\n");
}

static void test_rotation(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_account();
    assert_int_equal(kube_config_in_cluster(&c, "h", "443", folder_root(), &err), 0);
    c.read_ms = 1000;
    folder_write("token", "tok-2\n");
    folder_write("ca.crt", "CA2");
    kube_config_refresh(&c, 1000 + 59999, false);
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    kube_config_refresh(&c, 1000 + 60000, false);
    assert_string_equal(buf_str(&c.token.bytes), "tok-2");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    folder_write("token", "tok-3");
    kube_config_refresh(&c, 1000 + 60001, true);
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
    /* gone, empty or broken: the old ones stay */
    unlink(folder_path("token"));
    folder_write("ca.crt", "");
    kube_config_refresh(&c, 500000, true);
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    folder_write("token", "bad\ntoken");
    kube_config_refresh(&c, 500001, true);
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
}

#define USERS "server: 'https://h', certificate-authority-data: Q0E="

/* Written anew for the same server, by whatever writes such files; one for something else is somebody else's. */
static void test_kubeconfig_is_read_again(void **ctx)
{
    static const char *const others[] = {
        KUBECONFIG("server: 'https://other'", "token: t3"),
        KUBECONFIG("server: 'https://h', tls-server-name: x", "token: t3"),
        KUBECONFIG("server: 'https://h', proxy-url: 'http://p:1'", "token: t3"),
        KUBECONFIG("server: 'https://h', insecure-skip-tls-verify: true", "token: t3"),
        KUBECONFIG(USERS, "token: t3, as: jane"),
        KUBECONFIG(USERS, "username: jane, password: t3"),
        KUBECONFIG(USERS,
                   "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}"),
        KUBECONFIG(USERS, "token: 't 3'"),
        "{",
        "",
    };
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    folder_write("config", KUBECONFIG(USERS, "token: t1"));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    kube_config_refresh(&c, 1, true);
    assert_int_equal(c.generation, 0); /* nothing new */
    folder_write("config", KUBECONFIG("server: 'https://h/', certificate-authority-data: Q0Ey",
                                      "token: t2, client-certificate-data: Q0VSVA==, client-key-data: S0VZ"));
    kube_config_refresh(&c, 2, true);
    assert_int_equal(c.generation, 1);
    assert_string_equal(buf_str(&c.token.bytes), "t2");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    assert_string_equal(buf_str(&c.client_cert.bytes), "CERT");
    assert_string_equal(buf_str(&c.client_key.bytes), "KEY");
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        folder_write("config", others[i]);
        kube_config_refresh(&c, 3, true);
        if (c.generation != 1 || strcmp(buf_str(&c.token.bytes), "t2") != 0)
            fail_msg("row %zu was believed", i);
    }
    unlink(folder_path("config"));
    kube_config_refresh(&c, 4, true);
    assert_string_equal(buf_str(&c.token.bytes), "t2");
}

/* Whoever switches the current context at a desk does not change who we are: it is the context that was read that counts. */
static void test_switched_context(void **ctx)
{
#define TWO_USERS(current, first)                                                                            \
    "apiVersion: v1\nkind: Config\ncurrent-context: " current "\n"                                           \
    "clusters:\n- {name: k, cluster: {server: 'https://h'}}\n"                                               \
    "users:\n- {name: one, user: {token: " first "}}\n- {name: two, user: {token: other}}\n"                 \
    "contexts:\n- {name: c1, context: {cluster: k, user: one}}\n"                                            \
    "- {name: c2, context: {cluster: k, user: two}}\n"
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    folder_write("config", TWO_USERS("c1", "t1"));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.token.bytes), "t1");
    folder_write("config", TWO_USERS("c2", "t1"));
    kube_config_refresh(&c, 1, true);
    assert_string_equal(buf_str(&c.token.bytes), "t1");
    folder_write("config", TWO_USERS("c2", "t2"));
    kube_config_refresh(&c, 2, true);
    assert_string_equal(buf_str(&c.token.bytes), "t2");
}

/* Of a plugin's configuration only the authority is ours to replace. */
static void test_kubeconfig_of_a_plugin_is_read_again(void **ctx)
{
#define PLUGIN "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}"
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    folder_write("config", KUBECONFIG(USERS, PLUGIN));
    assert_int_equal(kube_config_read_list(&c, folder_path("config"), "c1", &err), 0);
    assert_int_equal(kube_secret_from_text(&c.token, "from-plugin", &err), 0);
    folder_write("config", KUBECONFIG("server: 'https://h', certificate-authority-data: Q0Ey", PLUGIN));
    kube_config_refresh(&c, 1, true);
    assert_int_equal(c.generation, 1);
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    assert_string_equal(buf_str(&c.token.bytes), "from-plugin");
}

/* A token that a file will replace once it is there, as client-go has it. */
static void test_token_until_its_file_is_there(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    folder_write("config", KUBECONFIG("server: 'https://h'", "token: first, tokenFile: later"));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.token.bytes), "first");
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "first");
    folder_write("later", "second\n");
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "second");
    unlink(folder_path("later")); /* what cannot be read keeps its old bytes */
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "second");
    folder_write("later", "third\n");
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "third");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        T(test_rotation),
        T(test_kubeconfig_is_read_again),
        T(test_switched_context),
        T(test_kubeconfig_of_a_plugin_is_read_again),
        T(test_token_until_its_file_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
