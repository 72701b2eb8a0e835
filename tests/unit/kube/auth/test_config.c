/* test_config.c - where the API server is: in a pod, or from the command line; and which files are read again. */
#include "kube/auth/config.h"

#include "common/fsutil.h"
#include "test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64];

static int folder_setup(void **ctx)
{
    (void)ctx;
    snprintf(root, sizeof(root), "/tmp/test_kube_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int folder_teardown(void **ctx)
{
    (void)ctx;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *folder_path(const char *name)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void folder_write(const char *name, const char *text)
{
    struct err err;

    assert_int_equal(fs_write_atomic(folder_path(name), text, strlen(text), &err), 0);
}

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
    assert_int_equal(kube_config_in_cluster(&c, "10.0.0.1", "443", root, &err), 0);
    assert_string_equal(c.server, "https://10.0.0.1:443");
    assert_string_equal(c.namespace_name, "operators");
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    kube_config_release(&c);
    assert_int_equal(kube_config_in_cluster(&c, "fd00::1", "6443", root, &err), 0);
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
        assert_int_equal(kube_config_in_cluster(&c, rows[i].host, rows[i].port, root, &err), -1);
        if (err.kind != rows[i].kind || !strstr(err.msg, rows[i].names))
            fail_msg("row %zu: %s: %s", i, err_kind_name(err.kind), err.msg);
        assert_null(c.server);
    }
    struct kube_config c = {0};
    struct err err;
    write_account();
    unlink(folder_path("ca.crt"));
    assert_int_equal(kube_config_in_cluster(&c, "h", "1", root, &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void test_find(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    char token[200], ca[200];
    struct err err;

    (void)ctx;
    write_account();
    snprintf(token, sizeof(token), "%s", folder_path("token"));
    snprintf(ca, sizeof(ca), "%s", folder_path("ca.crt"));
    assert_int_equal(
        kube_config_find(&c, &(struct kube_config_given){"https://h:6443/k8s//", ca, token}, &err), 0);
    assert_string_equal(c.server, "https://h:6443/k8s");
    assert_string_equal(c.namespace_name, "default");
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    assert_string_equal(buf_str(&c.ca.bytes), "CA");
    kube_config_release(&c);
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){"unix:/run/s", NULL, NULL}, &err), 0);
    assert_string_equal(c.server, "http://localhost");
    assert_string_equal(c.socket, "/run/s");
    assert_int_equal(c.token.bytes.len, 0);
    kube_config_release(&c);
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){"unix:", NULL, NULL}, &err), 0);
    assert_null(c.socket); /* http.h refuses it, and does not take it for port 80 of this machine */
    assert_string_equal(c.server, "unix:");
    kube_config_release(&c);
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){"https://h", "/none/ca", token}, &err),
                     -1);
    assert_non_null(strstr(err.msg, "/none/ca"));
    assert_null(c.server);
    folder_write("token", "a\r\nX-Header: 1");
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){"https://h", NULL, token}, &err), -1);
    assert_non_null(strstr(err.msg, token));
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){NULL, NULL, token}, &err), -1);
    assert_string_equal(err.msg, "--token-file: needs --server, too");
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){0}, &err), -1);
    assert_string_equal(
        err.msg,
        "no --server: not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    setenv("KUBERNETES_SERVICE_HOST", "h", 1);
    setenv("KUBERNETES_SERVICE_PORT", "bad", 1);
    assert_int_equal(kube_config_find(&c, &(struct kube_config_given){0}, &err), -1);
    assert_non_null(strstr(err.msg, "KUBERNETES_SERVICE_PORT: expected 1..65535"));
}

/* Replaced while we run: believed after a minute, or at once when a request was refused; the old bytes stay when it cannot be. */
static void test_rotation(void **ctx)
{
    cleanup_kube_config struct kube_config c = {0};
    struct err err;

    (void)ctx;
    write_account();
    assert_int_equal(kube_config_in_cluster(&c, "h", "443", root, &err), 0);
    c.read_ms = 1000;
    folder_write("token", "tok-2\n");
    folder_write("ca.crt", "CA2");
    kube_config_refresh(&c, 1000 + 59999);
    assert_string_equal(buf_str(&c.token.bytes), "tok-1");
    kube_config_refresh(&c, 1000 + 60000);
    assert_string_equal(buf_str(&c.token.bytes), "tok-2");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
    assert_int_equal(c.generation, 1);
    assert_false(kube_config_renewed(&c, 1, 1000 + 60001)); /* nothing new */
    folder_write("token", "tok-3");
    assert_true(kube_config_renewed(&c, 1, 1000 + 60001));
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
    assert_true(kube_config_renewed(&c, 1, 1000 + 60001)); /* another request found it */
    assert_int_equal(c.generation, 2);
    /* gone, empty or broken: the old ones stay */
    unlink(folder_path("token"));
    folder_write("ca.crt", "");
    assert_false(kube_config_renewed(&c, 2, 500000));
    folder_write("token", "bad\ntoken");
    assert_false(kube_config_renewed(&c, 2, 500001));
    assert_string_equal(buf_str(&c.token.bytes), "tok-3");
    assert_string_equal(buf_str(&c.ca.bytes), "CA2");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        T(test_in_cluster),
        T(test_in_cluster_refused),
        T(test_find),
        T(test_rotation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
