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
    write_file("config",
               "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}],"
               "\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"https://h\","
               "\"certificate-authority\":\"nowhere\",\"certificate-authority-data\":\"Q0E=\"}}]}");
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    assert_null(kube_config_warning(&c));
    kube_config_release(&c);

    write_file("config", KUBECONFIG("server: 'https://h', insecure-skip-tls-verify: true", ""));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_true(c.insecure);
    assert_non_null(strstr(kube_config_warning(&c), "insecure-skip-tls-verify"));
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
    write_file("config", KUBECONFIG(USERS, "token: t1"));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    kube_config_refresh(&c, 1, true);
    assert_int_equal(c.generation, 0); /* nothing new */
    write_file("config", KUBECONFIG("server: 'https://h/', certificate-authority-data: Q0Ey",
                                    "token: t2, client-certificate-data: Q0VSVA==, client-key-data: S0VZ"));
    kube_config_refresh(&c, 2, true);
    assert_int_equal(c.generation, 1);
    assert_string_equal(buf_str(&c.token.bytes), "t2");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    assert_string_equal(buf_str(&c.client_cert.bytes), "CERT");
    assert_string_equal(buf_str(&c.client_key.bytes), "KEY");
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        write_file("config", others[i]);
        kube_config_refresh(&c, 3, true);
        if (c.generation != 1 || strcmp(buf_str(&c.token.bytes), "t2") != 0)
            fail_msg("row %zu was believed", i);
    }
    unlink(path_of("config"));
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
    write_file("config", TWO_USERS("c1", "t1"));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.token.bytes), "t1");
    write_file("config", TWO_USERS("c2", "t1"));
    kube_config_refresh(&c, 1, true);
    assert_string_equal(buf_str(&c.token.bytes), "t1");
    write_file("config", TWO_USERS("c2", "t2"));
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
    write_file("config", KUBECONFIG(USERS, PLUGIN));
    assert_int_equal(kube_config_read_list(&c, path_of("config"), "c1", &err), 0);
    assert_int_equal(kube_secret_from_text(&c.token, "from-plugin", &err), 0);
    write_file("config", KUBECONFIG("server: 'https://h', certificate-authority-data: Q0Ey", PLUGIN));
    kube_config_refresh(&c, 1, true);
    assert_int_equal(c.generation, 1);
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    assert_string_equal(buf_str(&c.token.bytes), "from-plugin");
}

/* The rarer fields, each seen in what it becomes; what Kubernetes does not define is passed over. */
static void test_everything_else(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_file("config",
               KUBECONFIG("server: 'https://h', proxy-url: 'socks5://p:1080', disable-compression: true, "
                          "certificate-authority: '', "
                          "extensions: [{name: other, extension: 7}, {name: "
                          "client.authentication.k8s.io/exec, extension: {audience: 06e3fbd18de8}}]",
                          "username: me, password: 'p:w', as: jane, as-uid: u-1, as-groups: [a, b], "
                          "as-user-extra: {k: [v]}, extensions: [{name: x, extension: {}}], unknown: 1"));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
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
    snprintf(want, sizeof(want), "%s/./login", dir);
    write_file("config", KUBECONFIG("server: 'https://h'", EXEC));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_string_equal(c.exec.argv[0], want);
    assert_string_equal(c.exec.argv[1], "a");
    for (size_t i = 0; i < ARRAY_LEN(others); i++) { /* what is there already wins over a plugin */
        char text[1000];
        kube_config_release(&c);
        snprintf(text, sizeof(text), KUBECONFIG("server: 'https://h'", "%s, " EXEC), others[i]);
        write_file("config", text);
        assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
        assert_null(c.exec.argv);
    }
}

/* A token that a file will replace once it is there, as client-go has it. */
static void test_token_until_its_file_is_there(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_file("config", KUBECONFIG("server: 'https://h'", "token: first, tokenFile: later"));
    assert_int_equal(kube_config_read(&c, path_of("config"), NULL, &err), 0);
    assert_string_equal(buf_str(&c.token.bytes), "first");
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "first");
    write_file("later", "second\n");
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "second");
    unlink(path_of("later")); /* what cannot be read keeps its old bytes */
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "second");
    write_file("later", "third\n");
    kube_config_refresh(&c, 0, true);
    assert_string_equal(buf_str(&c.token.bytes), "third");
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
        {"apiVersion: v2\ncurrent-context: c1\n", "apiVersion: expected v1"},
        {"current-context: c1\nusers: [{name: a}, {name: b}, {name: a}]\n", "users: \"a\" is there twice"},
        {"current-context: c1\nclusters: [{name: a}, {name: a}]\n", "clusters: \"a\" is there twice"},
        {"current-context: c1\ncontexts: [{name: a}, {name: a}]\n", "contexts: \"a\" is there twice"},
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
    setenv("KUBECONFIG", "/nowhere/a:/nowhere/b", 1);
    assert_int_equal(kube_config_find(&c, NULL, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "KUBECONFIG: \"/nowhere/a:/nowhere/b\""));
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

/* kubectl's rules: of each name the first file's entry as a whole, and each file's paths from its own folder. */
static void test_several_files(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;
    char sub[200], list[1000];

    (void)ctx;
    snprintf(sub, sizeof(sub), "%s/sub", dir);
    assert_int_equal(fs_mkdirs(sub, &err), 0);
    write_file("sub/ca.pem", "CA-OF-SUB");
    write_file("tok", "tok-of-dir");
    write_file("sub/one",
               "clusters: [{name: k1, cluster: {server: 'https://one', certificate-authority: ca.pem}}]\n"
               "contexts: [{name: c0, context: {cluster: k1}}]\n");
    write_file("two", "current-context: c1\n"
                      "clusters: [{name: k1, cluster: {server: 'https://two', tls-server-name: two}}]\n"
                      "users: [{name: u1, user: {tokenFile: tok}}]\n"
                      "contexts: [{name: c1, context: {cluster: k1, user: u1}}]\n");
    write_file("three", "current-context: c0\nusers: [{name: u1, user: {token: three}}]\n");
    snprintf(list, sizeof(list), ":%s/one:%s/nothing::%s/two:%s/three:%s/one", sub, dir, dir, dir, sub);
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
    write_file("three", "a: [");
    assert_int_equal(kube_config_read_list(&c, list, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "/three: line"));
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
        write_file(name, "kind: Config\n");
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s/%s:", dir, name);
    }
    assert_int_equal(kube_config_read_list(&c, list, NULL, &err), -1);
    assert_non_null(strstr(err.msg, "at most 32 files"));
}

/* HTTPS_PROXY goes for what `find` finds, unless NO_PROXY has the server; a kubeconfig's proxy-url comes before it. */
static void test_proxy_of_the_environment(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    unsetenv("https_proxy");
    unsetenv("no_proxy");
    write_file("config", KUBECONFIG("server: 'https://10.1.2.3:6443'", ""));
    setenv("HTTPS_PROXY", "proxy:3128", 1);
    setenv("NO_PROXY", "10.9.0.0/16", 1);
    assert_int_equal(kube_config_find(&c, path_of("config"), &err), 0);
    assert_string_equal(c.environment_proxy, "http://proxy:3128");
    assert_null(c.proxy_url);
    kube_config_release(&c);
    setenv("NO_PROXY", "10.1.0.0/16", 1);
    assert_int_equal(kube_config_find(&c, path_of("config"), &err), 0);
    assert_null(c.environment_proxy);
    kube_config_release(&c);
    unsetenv("NO_PROXY");
    setenv("no_proxy", "10.1.2.3", 1);
    assert_int_equal(kube_config_find(&c, path_of("config"), &err), 0);
    assert_null(c.environment_proxy);
    kube_config_release(&c);
    unsetenv("no_proxy");
    setenv("HTTPS_PROXY", "gopher://p", 1);
    assert_int_equal(kube_config_find(&c, path_of("config"), &err), -1);
    assert_non_null(strstr(err.msg, "HTTPS_PROXY"));
    assert_null(c.server);
    unsetenv("HTTPS_PROXY");
    setenv("https_proxy", "socks5://p", 1);
    assert_int_equal(kube_config_find(&c, path_of("config"), &err), 0);
    assert_string_equal(c.environment_proxy, "socks5://p");
    unsetenv("https_proxy");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_in_cluster),
        T(test_in_cluster_refused),
        T(test_rotation),
        T(test_kubeconfig),
        T(test_kubeconfig_is_read_again),
        T(test_switched_context),
        T(test_kubeconfig_of_a_plugin_is_read_again),
        T(test_everything_else),
        T(test_exec),
        T(test_token_until_its_file_is_there),
        T(test_kubeconfig_refused),
        T(test_bounds),
        T(test_several_files),
        T(test_too_many_files),
        T(test_proxy_of_the_environment),
        T(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
