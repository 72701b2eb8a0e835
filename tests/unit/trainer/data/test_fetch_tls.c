/* test_fetch_tls.c - downloads over https: whose certificate is believed, and where a redirect may lead. */
#include "files.h"
#include "test.h"

#include "common/fsutil.h"
#include "trainer/data/fetch.h"
#include "trainer/data/md5.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { BODY = 20000, SKIPPED = 77 };

struct fixture {
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    char ca[PATH_MAX + 32];
    char md5[MD5_TEXT_BYTES];
    uint8_t body[BODY];
    pid_t server;
    int port;
    struct fetch f;
    struct err err;
};

/* Two authorities, and certificates: of the first for 127.0.0.1 (good) and for another name, of the second for 127.0.0.1,
 * and one that is over. */
static const char CERTIFICATES[] =
    "set -e; cd '%s'; exec 2>certificates.log;"
    "key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; };"
    "authority() { key $1; openssl req -x509 -new -key $1.key -subj /CN=$1 -days 2 -out $1.pem; };"
    "server() { key $1; openssl req -new -key $1.key -subj /CN=$1 -out $1.csr;"
    "  printf 'subjectAltName=%%s' $3 >$1.ext;"
    "  openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -extfile $1.ext $4 -out $1.pem; "
    "};"
    "authority ours; authority theirs;"
    "server good ours IP:127.0.0.1 '-days 2';"
    "server stranger theirs IP:127.0.0.1 '-days 2';"
    "server misnamed ours DNS:elsewhere.example '-days 2';"
    "server over ours IP:127.0.0.1 '-days -1'";

static void page(struct fixture *f, const char *name, const char *head, const void *body, size_t len)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    cleanup_fclose FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fprintf(out, "%s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", head, len);
    assert_int_equal(fwrite(body, 1, len, out), len);
}

/* openssl's own server: it sends files as they are, heads included. The first line it says has its port. */
static void start(struct fixture *f, const char *certificate)
{
    char command[3 * PATH_MAX];
    char line[256] = "";
    int pipes[2];

    snprintf(command, sizeof(command),
             "cd '%s' && exec openssl s_server -accept 127.0.0.1:0 -HTTP -cert %s.pem -key %s.key 2>&1",
             f->folder, certificate, certificate);
    assert_int_equal(pipe(pipes), 0);
    f->server = fork();
    assert_true(f->server >= 0);
    if (!f->server) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(120);
    }
    close(pipes[1]);
    FILE *said = fdopen(pipes[0], "r");
    assert_non_null(said);
    while (!f->port && fgets(line, sizeof(line), said))
        (void)!sscanf(line, "ACCEPT 127.0.0.1:%d", &f->port);
    if (!f->port)
        fail_msg("openssl s_server: %s", line);
    fclose(said);
}

static void stop(struct fixture *f)
{
    kill(f->server, SIGKILL);
    waitpid(f->server, NULL, 0);
    f->server = 0;
    f->port = 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char command[PATH_MAX + sizeof(CERTIFICATES)];
    struct md5 m;

    files_folder(f->folder);
    for (int i = 0; i < BODY; i++)
        f->body[i] = (uint8_t)(i * 11 + i / 256);
    md5_begin(&m);
    md5_add(&m, f->body, BODY);
    md5_text(&m, f->md5);
    snprintf(f->path, sizeof(f->path), "%s/data.gz", f->folder);
    snprintf(f->ca, sizeof(f->ca), "%s/ours.pem", f->folder);
    snprintf(command, sizeof(command), CERTIFICATES, f->folder);
    assert_int_equal(system(command), 0);
    page(f, "body", "HTTP/1.1 200 OK", f->body, BODY);
    f->f = (struct fetch){.path = f->path, .md5 = f->md5, .limits = fetch_limits_default(1000)};
    f->f.limits.rounds = 1;
    f->f.limits.ca_file = f->ca;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->server)
        stop(f);
    files_remove(f->folder);
    free(f);
    return 0;
}

static int get(struct fixture *f, const char *place)
{
    char url[128];

    snprintf(url, sizeof(url), "https://127.0.0.1:%d/%s", f->port, place);
    f->f.urls[0] = url;
    f->err = (struct err){0};
    return fetch(&f->f, &f->err);
}

static void expect_whole(struct fixture *f)
{
    cleanup_buf struct buf got = BUF_INIT(2 * BODY);

    if (fs_read(f->path, &got, &f->err))
        fail_msg("%s", f->err.msg);
    assert_int_equal(got.len, BODY);
    assert_memory_equal(got.data, f->body, BODY);
    unlink(f->path);
}

static void expect_refused(struct fixture *f, const char *place, const char *says)
{
    assert_int_equal(get(f, place), -1);
    if (f->err.kind != ERR_INVALID || !strstr(f->err.msg, says))
        fail_msg("%s: kind %d \"%s\", expected \"%s\"", place, f->err.kind, f->err.msg, says);
    assert_int_equal(access(f->path, F_OK), -1);
}

static void redirects_stay_within_https(void **state)
{
    struct fixture *f = *state;
    char head[256];

    start(f, "good");
    if (get(f, "body"))
        fail_msg("%s", f->err.msg);
    expect_whole(f);
    snprintf(head, sizeof(head), "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:%d/body", f->port);
    page(f, "moved", head, "", 0);
    if (get(f, "moved"))
        fail_msg("%s", f->err.msg);
    expect_whole(f);
    page(f, "down", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/body", "", 0);
    expect_refused(f, "down", "/down: redirected to an address that is not https");
    page(f, "loop", "HTTP/1.1 302 Found\r\nLocation: /loop", "", 0);
    expect_refused(f, "loop", "/loop: redirected too often");
}

static void only_trusted_certificates_are_believed(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *why;
    } bad[] = {{"stranger", "issuer"}, {"misnamed", "subject name"}, {"over", "expired"}};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        start(f, bad[i].name);
        expect_refused(f, "body", "(SSL_CERT_FILE names other authorities)");
        if (!strstr(f->err.msg, bad[i].why))
            fail_msg("%s: %s", bad[i].name, f->err.msg);
        stop(f);
    }
    start(f, "good");
    f->f.limits.ca_file = NULL; /* the system does not know this test */
    expect_refused(f, "body", "(SSL_CERT_FILE names other authorities)");
    f->f.limits.ca_file = "/nowhere/ca.pem";
    expect_refused(f, "body", "/nowhere/ca.pem");
    f->f.limits.ca_file = f->ca;
    assert_int_equal(get(f, "body"), 0);
    expect_whole(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(redirects_stay_within_https),
        TEST(only_trusted_certificates_are_believed),
    };

    if (system("openssl version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: no openssl command\n");
        return SKIPPED;
    }
    unsetenv("https_proxy");
    unsetenv("all_proxy");
    setenv("no_proxy", "127.0.0.1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
