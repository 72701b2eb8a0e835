/* test_config.c - in-cluster and kubeconfig: what is understood, and what is refused by name. */
#include "kube/config.h"

#include "common/fsutil.h"
#include "test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static int setup(void **ctx)
{
    (void)ctx;
    snprintf(dir, sizeof(dir), "/tmp/test_config_XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int teardown(void **ctx)
{
    (void)ctx;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    struct err err;

    assert_int_equal(fs_write_atomic(path_of(name), text, strlen(text), &err), 0);
}

static void write_account(void)
{
    write_file("token", "tok-1\n");
    write_file("ca.crt", "CA");
    write_file("namespace", "operators\n");
}

static void test_in_cluster(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_account();
    assert_int_equal(kube_config_in_cluster(&c, "10.0.0.1", "443", dir, &err), 0);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.namespace_name, "operators");
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    kube_config_release(&c);
    assert_int_equal(kube_config_in_cluster(&c, "fd00::1", "6443", dir, &err), 0);
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
            write_file(rows[i].broken_file, rows[i].content);
        assert_int_equal(kube_config_in_cluster(&c, rows[i].host, rows[i].port, dir, &err), -1);
        if (err.kind != rows[i].kind || !strstr(err.msg, rows[i].names))
            fail_msg("row %zu: %s: %s", i, err_kind_name(err.kind), err.msg);
        assert_null(c.server);
    }
    struct kube_config c = {0};
    struct err err;
    write_account();
    unlink(path_of("ca.crt"));
    assert_int_equal(kube_config_in_cluster(&c, "h", "1", dir, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void test_rotation(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_account();
    assert_int_equal(kube_config_in_cluster(&c, "h", "443", dir, &err), 0);
    c.read_ms = 1000;
    write_file("token", "tok-2\n");
    write_file("ca.crt", "CA2");
    kube_config_refresh(&c, 1000 + 59999, false);
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    kube_config_refresh(&c, 1000 + 60000, false);
    assert_string_equal(buf_str(&c.token.bytes), "tok-2");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    write_file("token", "tok-3");
    kube_config_refresh(&c, 1000 + 60001, true);
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
    /* gone, empty or broken: the old ones stay */
    unlink(path_of("token"));
    write_file("ca.crt", "");
    kube_config_refresh(&c, 500000, true);
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    write_file("token", "bad\ntoken");
    kube_config_refresh(&c, 500001, true);
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
}

#define KUBECONFIG(cluster, user)                                                                            \
    "apiVersion: v1\nkind: Config\ncurrent-context: c1\n"                                                    \
    "clusters:\n- name: k1\n  cluster: {" cluster "}\n"                                                      \
    "users:\n- name: u1\n  user: {" user "}\n"                                                               \
    "contexts:\n- name: c1\n  context: {cluster: k1, user: u1, namespace: team}\n"                           \
    "- name: anonymous\n  context: {cluster: k1}\n- name: lost\n  context: {cluster: nowhere}\n"

static void test_kubeconfig(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_file("ca.pem", "CA-FILE");
    write_file("tok", "from-file\n");
    write_file("config",
               KUBECONFIG("server: 'https://h:6443/', certificate-authority: ca.pem, tls-server-name: api",
                          "token: text, tokenFile: tok, client-certificate-data: Q0VSVA==, "
                          "client-key-data: S0VZ"));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_string_equal(c.server, "https://h:6443");
    assert_string_equal(c.namespace_name, "team");
    assert_string_equal(c.tls_server_name, "api");
    assert_false(c.insecure);
    assert_string_equal(buf_str(&c.ca.bytes), "CA-FILE");
    assert_string_equal(buf_str(&c.token.bytes), "from-file"); /* tokenFile beats token */
    assert_string_equal(buf_str(&c.client_cert.bytes), "CERT");
    assert_string_equal(buf_str(&c.client_key.bytes), "KEY");
    kube_config_release(&c);

    assert_int_equal(kube_config_read(&c, path_of("config"), "anonymous", &err), 0);
    assert_string_equal(c.namespace_name, "default");
    assert_int_equal(c.token.bytes.len, 0);
    kube_config_release(&c);

    /* -data beats the file; JSON is YAML */
    write_file(
        "config",
        "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}],"
        "\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://h\",\"insecure-skip-tls-verify\":"
        "true,\"certificate-authority\":\"nowhere\",\"certificate-authority-data\":\"Q0E=\"}}]}");
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    assert_true(c.insecure);
}

static void test_kubeconfig_refused(void **ctx)
{
    static const struct {
        const char *text, *names;
    } rows[] = {
        {"", "empty"},
        {"a: [", "line"},
        {"a: 1\na: 2\n", "twice"},
        {"a: &x 1\n", "anchors"},
        {"a: *x\n", "alias"},
        {"a: !!str x\n", "tags"},
        {"a: 1\n---\nb: 2\n", "one document"},
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
        {KUBECONFIG("server: 'https://h', proxy-url: 'http://p'", ""), "proxy-url: not supported"},
        {KUBECONFIG("server: 'https://h', certificate-authority: nowhere.pem", ""), "nowhere.pem"},
        {KUBECONFIG("server: 'https://h', certificate-authority-data: '***'", ""),
         "certificate-authority-data"},
        {KUBECONFIG("server: 'https://h', certificate-authority-data: 'QUJD='", ""),
         "certificate-authority-data"},
        {KUBECONFIG("server: 'https://h', certificate-authority-data: 'QU=D'", ""),
         "certificate-authority-data"},
        {KUBECONFIG("server: 'https://h', insecure-skip-tls-verify: 'yes'", ""), "insecure-skip-tls-verify"},
        {KUBECONFIG("server: 'https://h', tls-server-name: 'a/b'", ""), "tls-server-name"},
        {KUBECONFIG("server: 'https://h'", "exec: {command: aws}"), "exec: not supported"},
        {KUBECONFIG("server: 'https://h'", "auth-provider: {name: gcp}"), "auth-provider: not supported"},
        {KUBECONFIG("server: 'https://h'", "username: a, password: b"), "username: not supported"},
        {KUBECONFIG("server: 'https://h'", "as: root"), "as: not supported"},
        {KUBECONFIG("server: 'https://h'", "client-certificate-data: Q0VSVA=="), "belong together"},
        {KUBECONFIG("server: 'https://h'", "token: \"a\\nb\""), "token"},
        {KUBECONFIG("server: 'https://h'", "token: \"\""), "token"},
        {KUBECONFIG("server: 'https://h'", "tokenFile: nowhere"), "tokenFile"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_config c = {0};
        struct err err;
        write_file("config", rows[i].text);
        if (kube_config_read(&c, path_of("config"), NULL, &err) == 0)
            fail_msg("row %zu was accepted, expected \"%s\"", i, rows[i].names);
        if (!strstr(err.msg, rows[i].names) || !strstr(err.msg, path_of("config")))
            fail_msg("row %zu: \"%s\" does not name \"%s\" and the file", i, err.msg, rows[i].names);
        assert_null(c.server);
    }
    struct kube_config c = {0};
    struct err err;
    write_file("config", KUBECONFIG("server: 'https://h'", ""));
    assert_int_equal(kube_config_read(&c, path_of("config"), "lost", &err), -1);
    assert_non_null(strstr(err.msg, "clusters: expected one named \"nowhere\""));
    assert_int_equal(kube_config_read(&c, path_of("nothing"), NULL, &err), -1);
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
    write_file("config", text);
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), -1);
    assert_non_null(strstr(err.msg, "deeper"));
    n = (size_t)sprintf(text, "a: [");
    for (int i = 0; i < 11000; i++)
        n += (size_t)sprintf(text + n, "1,");
    sprintf(text + n, "1]\n");
    write_file("config", text);
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), -1);
    assert_non_null(strstr(err.msg, "nodes"));
    memset(text, '#', sizeof(text) - 1);
    write_file("config", text);
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
}

static void test_find(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    unsetenv("KUBERNETES_SERVICE_HOST");
    write_file("config", KUBECONFIG("server: 'https://from-env'", ""));
    setenv("KUBECONFIG", path_of("config"), 1);
    assert_int_equal(kube_config_find(&c, NULL, &err), 0);
    assert_string_equal(c.server, "https://from-env");
    kube_config_release(&c);
    setenv("KUBECONFIG", "/a:/b", 1);
    assert_int_equal(kube_config_find(&c, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "KUBECONFIG"));
    assert_int_equal(kube_config_find(&c, path_of("config"), &err), 0); /* what is asked for comes first */
    kube_config_release(&c);
    unsetenv("KUBECONFIG");
    setenv("HOME", dir, 1);
    assert_int_equal(kube_config_find(&c, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "not in a pod"));
    setenv("KUBERNETES_SERVICE_HOST", "h", 1);
    setenv("KUBERNETES_SERVICE_PORT", "bad", 1);
    assert_int_equal(kube_config_find(&c, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "KUBERNETES_SERVICE_PORT"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_in_cluster), T(test_in_cluster_refused), T(test_rotation),
        T(test_kubeconfig), T(test_kubeconfig_refused), T(test_bounds),
        T(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
