/* test_exec.c - a credential plugin: how a kubeconfig names it, what it is told, what it may answer. */
#include "kube/auth/execcred.h"
#include "kube/auth/execspec.h"

#include "test.h"

#include <string.h>

#define V1 "client.authentication.k8s.io/v1"
#define V1BETA1 "client.authentication.k8s.io/v1beta1"

static int decode_spec(const char *json, struct arena *a, struct exec_spec *ret, struct err *err)
{
    cleanup_json cJSON *tree = json_parse(json, strlen(json), err);

    assert_non_null(tree);
    struct json_at at = json_root(tree, "exec");
    return exec_spec_decode(&at, "/home/me/.kube", a, ret, err);
}

static void test_spec(void **ctx)
{
    cleanup_arena struct arena a = {0};
    struct exec_spec s;
    struct err err;

    (void)ctx;
    assert_int_equal(
        decode_spec("{\"apiVersion\":\"" V1 "\",\"command\":\"aws\",\"args\":[\"eks\",\"get-token\"],"
                    "\"env\":[{\"name\":\"AWS_PROFILE\",\"value\":\"dev\"},{\"name\":\"EMPTY\"}],"
                    "\"interactiveMode\":\"Never\",\"provideClusterInfo\":true,"
                    "\"installHint\":\"install it:\\n  apt install aws\\u001b[1m\\n\"}",
                    &a, &s, &err),
        0);
    assert_string_equal(s.argv[0], "aws");
    assert_string_equal(s.argv[1], "eks");
    assert_string_equal(s.argv[2], "get-token");
    assert_null(s.argv[3]);
    assert_string_equal(s.env[0], "AWS_PROFILE=dev");
    assert_string_equal(s.env[1], "EMPTY=");
    assert_null(s.env[2]);
    assert_string_equal(s.api_version, V1);
    assert_true(s.provide_cluster_info);
    assert_string_equal(s.install_hint, "install it:   apt install aws [1m");
}

/* A name is for PATH; what holds a '/' is a path, and a relative one begins at the kubeconfig. */
static void test_where_the_command_is(void **ctx)
{
    static const char *const rows[][2] = {{"aws", "aws"},
                                          {"/opt/aws", "/opt/aws"},
                                          {"./aws", "/home/me/.kube/./aws"},
                                          {"../bin/aws", "/home/me/.kube/../bin/aws"},
                                          {"bin/aws", "/home/me/.kube/bin/aws"}};

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_arena struct arena a = {0};
        struct exec_spec s;
        struct err err;
        const char *json =
            arena_printf(&a, "{\"apiVersion\":\"" V1BETA1 "\",\"command\":\"%s\"}", rows[i][0]);
        assert_int_equal(decode_spec(json, &a, &s, &err), 0); /* v1beta1 needs no interactiveMode */
        assert_string_equal(s.argv[0], rows[i][1]);
        assert_string_equal(s.install_hint, "");
        assert_false(s.provide_cluster_info);
        assert_null(s.env[0]);
    }
}

static void test_spec_refused(void **ctx)
{
#define V1_AWS "\"apiVersion\":\"" V1 "\",\"command\":\"aws\",\"interactiveMode\":\"Never\""
    static const char *const rows[][2] = {
        {"[]", "exec: expected an object"},
        {"{}", "exec.command: expected the program"},
        {"{\"command\":7}", "exec.command: expected a string"},
        {"{\"command\":\"aws\"}", "exec.apiVersion: expected client.authentication.k8s.io/v1"},
        {"{\"command\":\"aws\",\"apiVersion\":\"client.authentication.k8s.io/v1alpha1\"}", "v1alpha1"},
        {"{\"command\":\"aws\",\"apiVersion\":\"" V1 "\"}", "exec.interactiveMode: expected Never"},
        {"{\"command\":\"aws\",\"apiVersion\":\"" V1BETA1 "\",\"interactiveMode\":\"Always\"}",
         "exec.interactiveMode: Always: this program has no terminal"},
        {"{\"command\":\"aws\",\"apiVersion\":\"" V1 "\",\"interactiveMode\":\"never\"}", "got \"never\""},
        {"{" V1_AWS ",\"args\":\"x\"}", "exec.args: expected a list"},
        {"{" V1_AWS ",\"args\":[\"x\",1]}", "exec.args[1]: expected a string"},
        {"{" V1_AWS ",\"env\":{}}", "exec.env: expected a list"},
        {"{" V1_AWS ",\"env\":[1]}", "exec.env[0]: expected an object"},
        {"{" V1_AWS ",\"env\":[{\"value\":\"x\"}]}", "exec.env[0]: name"},
        {"{" V1_AWS ",\"env\":[{\"name\":\"A=B\",\"value\":\"x\"}]}", "exec.env[0]: name"},
        {"{" V1_AWS ",\"env\":[{\"name\":\"A\",\"value\":1}]}", "exec.env[0].value: expected a string"},
        {"{" V1_AWS ",\"provideClusterInfo\":\"yes\"}", "exec.provideClusterInfo: expected true or false"},
        {"{" V1_AWS ",\"installHint\":1}", "exec.installHint: expected a string"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_arena struct arena a = {0};
        struct exec_spec s = {0};
        struct err err;
        if (decode_spec(rows[i][0], &a, &s, &err) == 0)
            fail_msg("row %zu was accepted", i);
        if (err.kind != ERR_INVALID || !strstr(err.msg, rows[i][1]))
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, err.msg, rows[i][1]);
        assert_null(s.argv);
    }
}

static void test_info(void **ctx)
{
    const struct exec_cluster all = {.server = "https://h:6443",
                                     .tls_server_name = "api",
                                     .proxy_url = "socks5://p",
                                     .config = "{\"audience\":\"06e3\"}",
                                     .ca = sv_from("CA"),
                                     .insecure = true,
                                     .disable_compression = true};
    const struct exec_cluster least = {.server = "https://h"};
    cleanup_buf struct buf out = BUF_INIT(EXEC_INFO_MAX_BYTES);
    struct err err;

    (void)ctx;
    assert_int_equal(exec_info(V1, NULL, &out, &err), 0);
    assert_string_equal(buf_str(&out), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                       "\",\"spec\":{\"interactive\":false}}");
    buf_clear(&out);
    assert_int_equal(exec_info(V1BETA1, &all, &out, &err), 0);
    assert_string_equal(
        buf_str(&out),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA1
        "\",\"spec\":{\"cluster\":{\"server\":\"https://h:6443\",\"tls-server-name\":\"api\","
        "\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":\"Q0E=\",\"proxy-url\":\"socks5://"
        "p\",\"disable-compression\":true,\"config\":{\"audience\":\"06e3\"}},\"interactive\":false}}");
    buf_clear(&out);
    assert_int_equal(exec_info(V1, &least, &out, &err), 0);
    assert_non_null(strstr(buf_str(&out), "\"cluster\":{\"server\":\"https://h\"},"));
    /* More than a variable of the environment can hold. */
    static char big[EXEC_INFO_MAX_BYTES];
    struct exec_cluster huge = {.server = "https://h", .ca = {big, sizeof(big)}};
    buf_clear(&out);
    assert_int_equal(exec_info(V1, &huge, &out, &err), -1);
    assert_non_null(strstr(err.msg, "KUBERNETES_EXEC_INFO: certificate-authority"));
}

#define ANSWER(version, status)                                                                              \
    "{\"apiVersion\":\"" version "\",\"kind\":\"ExecCredential\",\"status\":" status "}"
#define PEM(what) "-----BEGIN " what "-----\\nAA==\\n-----END " what "-----\\n"
#define CERT "\"clientCertificateData\":\"" PEM("CERTIFICATE") "\""
#define KEY "\"clientKeyData\":\"" PEM("PRIVATE KEY") "\""

static void test_answers(void **ctx)
{
    static const struct {
        const char *text, *version, *token;
        bool cert;
        int64_t expires_ms;
    } rows[] = {
        {ANSWER(V1, "{\"token\":\"t\"}") "\n", V1, "t", false, INT64_MAX},
        {" \n" ANSWER(V1BETA1, "{\"token\":\"t\",\"expirationTimestamp\":null}"), V1BETA1, "t", false,
         INT64_MAX},
        {ANSWER(V1, "{\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T00:00:10Z\"}"), V1, "t", false,
         10000},
        {ANSWER(V1, "{\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T02:00:10.5+02:00\"}"), V1, "t",
         false, 10500},
        {ANSWER(V1, "{" CERT "," KEY "}"), V1, NULL, true, INT64_MAX},
        {ANSWER(V1, "{\"token\":\"\"," CERT "," KEY "}"), V1, NULL, true, INT64_MAX},
        {ANSWER(V1, "{\"token\":\"both\"," CERT "," KEY "}"), V1, "both", true, INT64_MAX},
        {"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false},"
         "\"status\":{\"token\":\"t\",\"later\":1}}",
         V1, "t", false, INT64_MAX},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exec_credential c = {0};
        cJSON *tree = NULL;
        struct err err;
        if (exec_credential_decode(sv_from(rows[i].text), rows[i].version, &tree, &c, &err) < 0)
            fail_msg("row %zu: %s", i, err.msg);
        assert_true(rows[i].token ? c.token && strcmp(c.token, rows[i].token) == 0 : !c.token);
        assert_int_equal(c.cert && c.key, rows[i].cert);
        assert_int_equal(c.expires_ms, rows[i].expires_ms);
        exec_tree_free(tree);
    }
}

static void test_answers_refused(void **ctx)
{
    static const char *const rows[][2] = {
        {"", "not JSON"},
        {"Please log in: secret", "not JSON"},
        {ANSWER(V1, "{\"token\":\"secret\"}") "secret", "text after"},
        {"[\"secret\"]", "ExecCredential: expected an object"},
        {"{}", "kind: expected ExecCredential"},
        {"{\"apiVersion\":\"" V1 "\",\"kind\":\"Secret\"}", "got \"Secret\""},
        {ANSWER(V1BETA1, "{\"token\":\"secret\"}"), "as in the kubeconfig, got \"" V1BETA1 "\""},
        {"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\"}", "ExecCredential.status: not set"},
        {ANSWER(V1, "null"), "ExecCredential.status: not set"},
        {ANSWER(V1, "\"secret\""), "ExecCredential.status: expected an object"},
        {ANSWER(V1, "{}"), "got neither"},
        {ANSWER(V1, "{\"token\":\"\"}"), "got neither"},
        {ANSWER(V1, "{\"token\":[\"secret\"]}"), "status.token: expected a string"},
        {ANSWER(V1, "{\"token\":\"secret\\r\\nX: 1\"}"), "status.token: byte 6"},
        {ANSWER(V1, "{\"token\":\"secret\\u00e9\"}"), "status.token: byte 6"},
        {ANSWER(V1, "{" CERT "}"), "only one"},
        {ANSWER(V1, "{\"token\":\"secret\"," KEY "}"), "only one"},
        {ANSWER(V1, "{" CERT ",\"clientKeyData\":\"secret\"}"), "status.clientKeyData: expected PEM"},
        {ANSWER(V1, "{\"clientCertificateData\":\"secret\"," KEY "}"), "status.clientCertificateData"},
        {ANSWER(V1, "{\"token\":\"secret\",\"expirationTimestamp\":\"tomorrow\"}"), "expected a time"},
        {ANSWER(V1, "{\"token\":\"secret\",\"expirationTimestamp\":17}"), "expirationTimestamp"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exec_credential c = {0};
        cJSON *tree = NULL;
        struct err err;
        if (exec_credential_decode(sv_from(rows[i][0]), V1, &tree, &c, &err) == 0)
            fail_msg("row %zu was accepted", i);
        if (err.kind != ERR_INVALID || !strstr(err.msg, rows[i][1]))
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, err.msg, rows[i][1]);
        assert_null(strstr(err.msg, "secret"));
        assert_null(tree);
        assert_null(c.token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),         cmocka_unit_test(test_where_the_command_is),
        cmocka_unit_test(test_spec_refused), cmocka_unit_test(test_info),
        cmocka_unit_test(test_answers),      cmocka_unit_test(test_answers_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
