/* test_kubeconfig.c - kubeconfig files: what is understood, and what is refused by name. */
#include "kube/auth/config.h"

#include "common/fsutil.h"
#include "folder.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static void test_kubeconfig(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    folder_write("ca.pem", "CA-FILE");
    folder_write("tok", "from-file\n");
    folder_write("config",
                 KUBECONFIG("server: 'https://h:6443/', certificate-authority: ca.pem, tls-server-name: api",
                            "token: text, tokenFile: tok, client-certificate-data: Q0VSVA==, "
                            "client-key-data: S0VZ"));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(c.server, "https://h:6443");
    assert_string_equal(c.namespace_name, "team");
    assert_string_equal(c.tls_server_name, "api");
    assert_false(c.insecure);
    assert_string_equal(buf_str(&c.ca.bytes), "CA-FILE");
    assert_string_equal(buf_str(&c.token.bytes), "from-file"); /* tokenFile beats token */
    assert_string_equal(buf_str(&c.client_cert.bytes), "CERT");
    assert_string_equal(buf_str(&c.client_key.bytes), "KEY");
    kube_config_release(&c);

    assert_int_equal(kube_config_read(&c, folder_path("config"), "anonymous", &err), 0);
    assert_string_equal(c.namespace_name, "default");
    assert_int_equal(c.token.bytes.len, 0);
    kube_config_release(&c);

    /* -data beats the file; JSON is YAML */
    folder_write("config",
                 "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}],"
                 "\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://h\","
                 "\"certificate-authority\":\"nowhere\",\"certificate-authority-data\":\"Q0E=\"}}]}");
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    assert_null(kube_config_warning(&c));
    kube_config_release(&c);

    folder_write("config", KUBECONFIG("server: 'https://h', insecure-skip-tls-verify: true", ""));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_true(c.insecure);
    assert_non_null(strstr(kube_config_warning(&c), "insecure-skip-tls-verify"));
}

/* The rarer fields, each seen in what it becomes; what Kubernetes does not define is passed over. */
static void test_everything_else(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    folder_write("config",
                 KUBECONFIG("server: 'https://h', proxy-url: 'socks5://p:1080', disable-compression: true, "
                            "certificate-authority: '', "
                            "extensions: [{name: other, extension: 7}, {name: "
                            "client.authentication.k8s.io/exec, extension: {audience: 06e3fbd18de8}}]",
                            "username: me, password: 'p:w', as: jane, as-uid: u-1, as-groups: [a, b], "
                            "as-user-extra: {k: [v]}, extensions: [{name: x, extension: {}}], unknown: 1"));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(c.proxy_url, "socks5://p:1080");
    assert_null(c.environment_proxy);
    assert_true(c.disable_compression);
    assert_string_equal(c.exec_config, "{\"audience\":\"06e3fbd18de8\"}");
    assert_string_equal(c.username, "me");
    assert_string_equal(buf_str(&c.password.bytes), "p:w");
    assert_int_equal(c.as.n, 5);
    assert_string_equal(c.as.lines[0], "Impersonate-User: jane");
    assert_string_equal(c.as.lines[4], "Impersonate-Extra-k: v");
    assert_null(c.exec.argv);
}

static void test_exec(void **ctx)
{
#define EXEC "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./login, args: [a]}"
    static const char *const others[] = {"token: t", "username: me",
                                         "client-certificate-data: Q0VSVA==, client-key-data: S0VZ"};
    cleanup_kube_config struct kube_config c = {0};
    struct err err;
    char want[200];

    (void)ctx;
    snprintf(want, sizeof(want), "%s/./login", folder_root());
    folder_write("config", KUBECONFIG("server: 'https://h'", EXEC));
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
    assert_string_equal(c.exec.argv[0], want);
    assert_string_equal(c.exec.argv[1], "a");
    for (size_t i = 0; i < ARRAY_LEN(others); i++) { /* what is there already wins over a plugin */
        char text[1000];
        kube_config_release(&c);
        snprintf(text, sizeof(text), KUBECONFIG("server: 'https://h'", "%s, " EXEC), others[i]);
        folder_write("config", text);
        assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), 0);
        assert_null(c.exec.argv);
    }
}

static void test_kubeconfig_refused(void **ctx)
{
    static const struct {
        const char *text, *names;
    } rows[] = {
        {"", "config:1: expected a YAML document, found none"},
        {"a: [", "config:"},
        {"a: 1\na: 2\n", "config:2: key \"a\" stands here and in line 1"},
        {"a: *x\n", "no anchor"},
        {"a: !!int 1\n", "tags"},
        {"a: 1\n---\nb: 2\n", "expected one YAML document"},
        {"- 1\n", "expected an object"},
        {"kind: Pod\ncurrent-context: c1\n", "kind: expected Config"},
        {"kind: Config\n", "current-context"},
        {"current-context: 7\n", "current-context: expected a string"},
        {"current-context: c1\n", "contexts: expected one named \"c1\""},
        {"current-context: c1\ncontexts: {}\n", "contexts: expected a list"},
        {"current-context: c1\ncontexts: [{name: c1}]\n", "has no context"},
        {KUBECONFIG("server: 'ftp://h'", ""), "server: expected https://"},
        {KUBECONFIG("certificate-authority: x", ""), "server"},
        {KUBECONFIG("server: 'https://user@h'", ""), "server"},
        {"apiVersion: v2\ncurrent-context: c1\n", "apiVersion: expected v1"},
        {"current-context: c1\nusers: [{name: a}, {name: b}, {name: a}]\n", "users: \"a\" is given twice"},
        {"current-context: c1\nclusters: [{name: a}, {name: a}]\n", "clusters: \"a\" is given twice"},
        {"current-context: c1\ncontexts: [{name: a}, {name: a}]\n", "contexts: \"a\" is given twice"},
        {KUBECONFIG("server: 'https://h', proxy-url: 'ftp://me:secret@p'", ""),
         "proxy-url: expected http://"},
        {KUBECONFIG("server: 'https://h', proxy-url: 3128", ""), "proxy-url: expected a string"},
        {KUBECONFIG("server: 'https://h', insecure-skip-tls-verify: true, certificate-authority-data: Q0E=",
                    ""),
         "insecure-skip-tls-verify: true although a certificate-authority"},
        {KUBECONFIG("server: 'https://h', disable-compression: 1", ""), "disable-compression: expected true"},
        {KUBECONFIG("server: 'https://h', extensions: 1", ""), "extensions: expected a list"},
        {KUBECONFIG("server: 'https://h', certificate-authority: nowhere.pem", ""), "nowhere.pem"},
        {KUBECONFIG("server: 'https://h', certificate-authority-data: '***'", ""),
         "certificate-authority-data"},
        {KUBECONFIG("server: 'https://h', certificate-authority-data: 'QUJD='", ""),
         "certificate-authority-data"},
        {KUBECONFIG("server: 'https://h', certificate-authority-data: 'QU=D'", ""),
         "certificate-authority-data"},
        {KUBECONFIG("server: 'https://h', insecure-skip-tls-verify: 'yes'", ""), "insecure-skip-tls-verify"},
        {KUBECONFIG("server: 'https://h', tls-server-name: 'a/b'", ""), "tls-server-name"},
        {KUBECONFIG("server: 'https://h'", "exec: {command: aws}"), "exec.apiVersion: expected client.auth"},
        {KUBECONFIG("server: 'https://h'", "token: t, exec: {command: aws}"), "exec.apiVersion"},
        {KUBECONFIG("server: 'https://h'", "exec: {command: aws, interactiveMode: Always, apiVersion: "
                                           "client.authentication.k8s.io/v1}"),
         "exec.interactiveMode: Always"},
        {KUBECONFIG("server: 'https://h'", "auth-provider: {name: gcp}"),
         "auth-provider: \"gcp\" is not supported; use exec with gke-gcloud-auth-plugin"},
        {KUBECONFIG("server: 'https://h'", "auth-provider: {name: azure}"), "kubelogin"},
        {KUBECONFIG("server: 'https://h'", "auth-provider: {name: mine}"),
         "use exec with a credential plugin"},
        {KUBECONFIG("server: 'https://h'", "username: a, token: b"), "username and password beside a token"},
        {KUBECONFIG("server: 'https://h'", "username: 'a:b'"), "username: expected a name without"},
        {KUBECONFIG("server: 'https://h'", "as-uid: x"), "as: not set"},
        {KUBECONFIG("server: 'https://h'", "as: [root]"), "as: expected a string"},
        {KUBECONFIG("server: 'https://h'", "client-certificate-data: Q0VSVA=="), "belong together"},
        {KUBECONFIG("server: 'https://h'", "token: \"a\\nb\""), "token"},
        {KUBECONFIG("server: 'https://h'", "token: \"\""), "token"},
        {KUBECONFIG("server: 'https://h'", "tokenFile: nowhere"), "tokenFile"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_config c = {0};
        struct err err;
        folder_write("config", rows[i].text);
        if (kube_config_read(&c, folder_path("config"), NULL, &err) == 0)
            fail_msg("row %zu was accepted, expected \"%s\"", i, rows[i].names);
        if (!strstr(err.msg, rows[i].names) || !strstr(err.msg, folder_path("config")))
            fail_msg("row %zu: \"%s\" does not name \"%s\" and the file", i, err.msg, rows[i].names);
        assert_null(c.server);
    }
    struct kube_config c = {0};
    struct err err;
    folder_write("config", KUBECONFIG("server: 'https://h'", ""));
    assert_int_equal(kube_config_read(&c, folder_path("config"), "lost", &err), -1);
    assert_non_null(strstr(err.msg, "clusters: expected one named \"nowhere\""));
    assert_int_equal(kube_config_read(&c, folder_path("nothing"), NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void test_bounds(void **ctx)
{
    static char text[1200000];
    struct kube_config c = {0};
    struct err err;
    size_t n = 0;

    (void)ctx;
    for (int i = 0; i < 40; i++)
        n += (size_t)sprintf(text + n, "%*s-\n", i, "");
    folder_write("config", text);
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), -1);
    assert_non_null(strstr(err.msg, "nested too deeply"));
    n = (size_t)sprintf(text, "a: [");
    for (int i = 0; i < 17000; i++)
        n += (size_t)sprintf(text + n, "1,");
    sprintf(text + n, "1]\n");
    folder_write("config", text);
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), -1);
    assert_non_null(strstr(err.msg, "more than 16384 values"));
    memset(text, '#', sizeof(text) - 1);
    folder_write("config", text);
    assert_int_equal(kube_config_read(&c, folder_path("config"), NULL, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
}

/* kubectl's rules: of each name the first file's entry as a whole, and each file's paths from its own folder. */
static void test_several_files(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;
    char sub[200], list[1000];

    (void)ctx;
    snprintf(sub, sizeof(sub), "%s/sub", folder_root());
    assert_int_equal(fs_mkdirs(sub, &err), 0);
    folder_write("sub/ca.pem", "CA-OF-SUB");
    folder_write("tok", "tok-of-dir");
    folder_write("sub/one",
                 "clusters: [{name: k1, cluster: {server: 'https://one', certificate-authority: ca.pem}}]\n"
                 "contexts: [{name: c0, context: {cluster: k1}}]\n");
    folder_write("two", "current-context: c1\n"
                        "clusters: [{name: k1, cluster: {server: 'https://two', tls-server-name: two}}]\n"
                        "users: [{name: u1, user: {tokenFile: tok}}]\n"
                        "contexts: [{name: c1, context: {cluster: k1, user: u1}}]\n");
    folder_write("three", "current-context: c0\nusers: [{name: u1, user: {token: three}}]\n");
    snprintf(list, sizeof(list), ":%s/one:%s/nothing::%s/two:%s/three:%s/one", sub, folder_root(),
             folder_root(), folder_root(), sub);
    assert_int_equal(kube_config_read_list(&c, list, NULL, &err), 0);
    assert_string_equal(c.server, "https://one");
    assert_null(c.tls_server_name); /* not half of one entry and half of another */
    assert_string_equal(buf_str(&c.ca.bytes), "CA-OF-SUB");
    assert_string_equal(buf_str(&c.token.bytes), "tok-of-dir");
    kube_config_release(&c);
    assert_int_equal(kube_config_read_list(&c, list, "c0", &err), 0);
    assert_int_equal(c.token.bytes.len, 0);
    kube_config_release(&c);
    assert_int_equal(kube_config_read_list(&c, list, "c9", &err), -1);
    assert_non_null(strstr(err.msg, "contexts: expected one named \"c9\""));
    folder_write("three", "a: [");
    assert_int_equal(kube_config_read_list(&c, list, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "/three:"));
    assert_int_equal(kube_config_read_list(&c, "::", NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_null(c.server);
}

static void test_too_many_files(void **ctx)
{
    struct kube_config c = {0};
    struct err err;
    char list[4000];
    size_t n = 0;

    (void)ctx;
    for (int i = 0; i < 33; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        folder_write(name, "kind: Config\n");
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s/%s:", folder_root(), name);
    }
    assert_int_equal(kube_config_read_list(&c, list, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "at most 32 files"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        T(test_kubeconfig), T(test_everything_else), T(test_exec),           T(test_kubeconfig_refused),
        T(test_bounds),     T(test_several_files),   T(test_too_many_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
