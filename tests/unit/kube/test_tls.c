/* test_tls.c - the transport believes only the authority it was given, and only under the right name. */
#include "common/fsutil.h"
#include "kube/http.h"
#include "rig.h"
#include "test.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];
static char cwd[4096];

/* A throw-away authority, a certificate of its own for "api.example", a stranger's authority, a client's pair. */
static const char make_certs[] =
    "set -e\n"
    "key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }\n"
    "ca() { key $1; openssl req -x509 -new -key $1.key -days 2 -subj /CN=$1 -out $1.crt; }\n"
    "sign() { key $1; openssl req -new -key $1.key -subj /CN=$1 -out $1.csr;\n"
    "  printf \"$2\" > $1.ext; openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
    "-extfile $1.ext -out $1.crt; }\n"
    "ca ca; ca stranger\n"
    "sign server 'subjectAltName=DNS:api.example'\n"
    "sign local 'subjectAltName=IP:127.0.0.1'\n"
    "sign client 'extendedKeyUsage=clientAuth'\n";

static int run_script(const char *script)
{
    char command[4096];

    snprintf(command, sizeof(command), "{ %s } >log 2>&1", script);
    return system(command); /* NOLINT: a fixed script of this test */
}

static int group_setup(void **ctx)
{
    (void)ctx;
    snprintf(dir, sizeof(dir), "/tmp/test_tls_XXXXXX");
    if (!mkdtemp(dir) || !getcwd(cwd, sizeof(cwd)) || chdir(dir) < 0)
        return -1;
    return run_script(make_certs) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int group_teardown(void **ctx)
{
    (void)ctx;
    if (chdir(cwd) < 0)
        return -1;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

struct server {
    pid_t pid;
    FILE *out;
    int port;
};

/* openssl's own server on a port of the machine's choice, which it prints. */
static struct server serve(const char *cert, const char *const *extra)
{
    struct server s = {0};
    char crt[32], key[32], line[256];
    const char *argv[24] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert",
                            crt,       "-key",     key};
    int fds[2];

    snprintf(crt, sizeof(crt), "%s.crt", cert);
    snprintf(key, sizeof(key), "%s.key", cert);
    for (int i = 9; extra && *extra && i < 23; i++)
        argv[i] = *extra++;
    assert_int_equal(pipe(fds), 0);
    s.pid = fork();
    if (s.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a test that fails */
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        execvp("openssl", (char *const *)argv);
        _exit(127);
    }
    close(fds[1]);
    s.out = fdopen(fds[0], "r");
    while (!s.port && fgets(line, sizeof(line), s.out))
        if (strncmp(line, "ACCEPT ", 7) == 0 && strrchr(line, ':'))
            s.port = atoi(strrchr(line, ':') + 1);
    assert_in_range(s.port, 1, 65535);
    return s;
}

static void stop(struct server *s)
{
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    fclose(s->out);
}

struct result {
    bool over;
    int status;
    struct err err;
};

static void on_done(void *ctx, const struct http_response *r, const struct err *err)
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
    bool insecure;
};

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
    if (g.ca)
        assert_int_equal(kube_secret_from_file(&c.ca, g.ca, &err), 0);
    if (g.client) {
        snprintf(file, sizeof(file), "%s.crt", g.client);
        assert_int_equal(kube_secret_from_file(&c.client_cert, file, &err), 0);
        snprintf(file, sizeof(file), "%s.key", g.client);
        assert_int_equal(kube_secret_from_file(&c.client_key, file, &err), 0);
    }
    cleanup_loop struct loop *l = loop_new(clock_system(), &err);
    cleanup_http struct http *h = http_new(l, &c, &(struct http_options){0}, &err);
    struct transport t = http_transport(h);
    struct http_request req = {.method = "GET", .path = "/", .timeout_ms = 20000};
    assert_non_null(transport_start(&t, &req, &(struct http_handler){.ctx = &out, .done = on_done}, &err));
    rig_until(l, is_over, &out);
    return out;
}

static void test_authority_and_name(void **ctx)
{
    struct server s = serve("local", NULL);
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
    stop(&s);
}

static void test_server_name(void **ctx)
{
    struct server s = serve("server", NULL);

    (void)ctx;
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .name = "api.example"}).status, 200);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .name = "other.example"}).status, 0);
    stop(&s);
}

static void test_client_certificate(void **ctx)
{
    static const char *const ask[] = {"-Verify", "1", "-CAfile", "ca.crt", "-verify_return_error", NULL};
    struct server s = serve("local", ask);

    (void)ctx;
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .client = "client"}).status, 200);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt", .client = "stranger"}).status, 0);
    stop(&s);
}

static void test_old_protocols_are_refused(void **ctx)
{
    static const char *const old[] = {"-tls1_1", "-cipher", "ALL:@SECLEVEL=0", NULL};
    static const char *const enough[] = {"-tls1_2", NULL};
    struct server s = serve("local", old);

    (void)ctx;
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 0);
    stop(&s);
    s = serve("local", enough);
    assert_int_equal(get(s.port, (struct given){.ca = "ca.crt"}).status, 200);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_authority_and_name),
        cmocka_unit_test(test_server_name),
        cmocka_unit_test(test_client_certificate),
        cmocka_unit_test(test_old_protocols_are_refused),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
