/* test_fetch.c - downloads from a server of our own that refuses, stalls, cuts off, redirects and never ends; over https, whose
 * certificate is believed, and where a redirect may lead. */
#include "../../patience.h"
#include "files.h"
#include "test.h"

#include "common/fsutil.h"
#include "host/rank_state.h"
#include "trainer/data/fetch.h"
#include "trainer/data/http_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BODY = HTTP_SERVER_BODY, SKIPPED = 77 };

struct fixture {
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    char lock[PATH_MAX + 32];
    char url[FETCH_MIRRORS_MAX][128];
    char sha256[FETCH_SUM_BYTES];
    struct http_server server;
    pid_t tls;
    int tls_port;
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

/* openssl's own server: it sends files as they are, headers included. The first line that it prints has its port. */
static void start(struct fixture *f, const char *certificate)
{
    char command[3 * PATH_MAX];
    char line[256] = "";
    int pipes[2];

    snprintf(command, sizeof(command),
             "cd '%s' && exec openssl s_server -accept 127.0.0.1:0 -HTTP -cert %s.pem -key %s.key 2>&1",
             f->folder, certificate, certificate);
    assert_int_equal(pipe(pipes), 0);
    f->tls = fork();
    assert_true(f->tls >= 0);
    if (!f->tls) {
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
    while (!f->tls_port && fgets(line, sizeof(line), said))
        (void)!sscanf(line, "ACCEPT 127.0.0.1:%d", &f->tls_port);
    if (!f->tls_port)
        fail_msg("openssl s_server: %s", line);
    fclose(said);
}

static void stop(struct fixture *f)
{
    kill(f->tls, SIGKILL);
    waitpid(f->tls, NULL, 0);
    f->tls = 0;
    f->tls_port = 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    fetch_sum(http_server_body(), BODY, f->sha256);
    files_folder(f->folder);
    snprintf(f->path, sizeof(f->path), "%s/data.gz", f->folder);
    snprintf(f->lock, sizeof(f->lock), "%s/.fetch.lock", f->folder);
    http_server_start(&f->server);
    f->f = (struct fetch){
        .path = f->path,
        .sha256 = f->sha256,
        .limits = {.bytes_max = FETCH_BYTES_MAX, .stall_s = FETCH_STALL_S, .pause_ms = 1, .lock_ms = 1000}};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    http_server_stop(&f->server);
    if (f->tls)
        stop(f);
    files_remove(f->folder);
    free(f);
    return 0;
}

/* From these places of the server, in order; "" is one where nobody listens, NULL none. Those of the https server have no '/'. */
static int get(struct fixture *f, const char *first, const char *second)
{
    const char *const places[] = {first, second};

    for (int i = 0; i < 2; i++) {
        f->f.urls[i] = places[i] ? f->url[i] : NULL;
        if (places[i] && places[i][0] && places[i][0] != '/')
            snprintf(f->url[i], sizeof(f->url[i]), "https://127.0.0.1:%d/%s", f->tls_port, places[i]);
        else if (places[i])
            snprintf(f->url[i], sizeof(f->url[i]), "http://127.0.0.1:%d%s", places[i][0] ? f->server.port : 1,
                     places[i][0] ? places[i] : "/unreachable");
    }
    f->err = (struct err){0};
    return fetch(&f->f, &f->err);
}

/* It has been fetched; it is removed. */
static void expect_content(struct fixture *f)
{
    cleanup_buf struct buf got = BUF_INIT(2 * BODY);

    if (fs_read(f->path, &got, &f->err))
        fail_msg("%s", f->err.msg);
    assert_int_equal(got.len, BODY);
    assert_memory_equal(got.data, http_server_body(), BODY);
    unlink(f->path);
}

static void expect_whole(struct fixture *f, const char *first, const char *second)
{
    if (get(f, first, second))
        fail_msg("%s", f->err.msg);
    expect_content(f);
}

/* Nothing is left behind either: the next try begins as the first did. */
static void expect_refused(struct fixture *f, const char *first, const char *second, enum err_kind kind,
                           int code, const char *says)
{
    assert_int_equal(get(f, first, second), -1);
    if (f->err.kind != kind || f->err.code != code || !strstr(f->err.msg, says))
        fail_msg("%s: kind %d code %d \"%s\", expected %d %d \"%s\"", first, f->err.kind, f->err.code,
                 f->err.msg, kind, code, says);
    assert_int_equal(access(f->path, F_OK), -1);
}

static void fetches_once(void **state)
{
    struct fixture *f = *state;
    struct rank_slot *slot = rank_state_join(NULL);

    assert_int_equal(get(f, "/good", NULL), 0);
    assert_true(slot->signs > 0); /* what came showed life */
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->server.seen->requests, 1);
    unlink(f->path);
    expect_whole(f, "/moved", NULL);
}

static void refusals_are_named(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *place;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {"/none", ERR_NOT_FOUND, "/none: the server answered 404"},
        {"/503", ERR_TRANSIENT, "/503: the server answered 503"},
        {"/cut", ERR_TRANSIENT, "/cut: "},
        {"/wrong", ERR_INVALID, "/wrong: SHA-256 8810ad581e59f2bc..., expected "},
        {"/loop", ERR_INVALID, "/loop: redirected too often"},
        {"/file", ERR_INVALID, "/file: redirected to an address that is not https"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(f, cases[i].place, NULL, cases[i].kind, 0, cases[i].says);
    /* What may pass is tried three times. */
    assert_true(f->server.seen->requests <= 5 + 2 * 2 + FETCH_REDIRECTS_MAX + 1);
    expect_refused(f, "", NULL, ERR_NOT_FOUND, ENETUNREACH, "127.0.0.1");
    /* And no second try, which takes seconds again. The server of "/good" may stand still for a second on a busy machine. */
    for (int64_t ms = 1000; f->f.limits.stall_s = (int)(ms / 1000), get(f, "/stall", "/good");
         ms = patience_grow(ms))
        if (f->err.kind != ERR_TRANSIENT || !strstr(f->err.msg, "/good: "))
            fail_msg("%s", f->err.msg);
    expect_content(f);
    f->f.limits.stall_s = FETCH_STALL_S;
    f->f.limits.bytes_max = BODY;
    expect_refused(f, "/endless", NULL, ERR_INVALID, 0, "/endless: larger than 100000 bytes");
    expect_whole(f, "/good", NULL);
    f->f.limits.bytes_max = BODY - 1;
    expect_refused(f, "/good", NULL, ERR_INVALID, 0, "/good: larger than 99999 bytes");
}

/* Of two failures the one that another try, or a person, can do something about. */
static void the_failure_that_says_most_is_told(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *first, *second;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {"/none", "/503", ERR_TRANSIENT, "/503: "},   {"/503", "/none", ERR_TRANSIENT, "/503: "},
        {"/wrong", "/none", ERR_INVALID, "/wrong: "}, {"/none", "/loop", ERR_INVALID, "/loop: "},
        {"", "/none", ERR_NOT_FOUND, "/none: "},      {"/none", "", ERR_NOT_FOUND, "/none: "},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(f, cases[i].first, cases[i].second, cases[i].kind, 0, cases[i].says);
}

static void the_next_mirror_is_tried(void **state)
{
    struct fixture *f = *state;

    expect_whole(f, "/none", "/good");
    expect_whole(f, "/wrong", "/good");
    expect_whole(f, "/cut", "/good");
    expect_whole(f, "", "/good");
}

static bool after_some_questions(void *ctx)
{
    return --*(int *)ctx < 0;
}

static int hold(const struct fixture *f)
{
    int fd = open(f->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(flock(fd, LOCK_EX), 0);
    return fd;
}

/* In a transfer that stands still, before another server is looked for, and behind another process's lock. */
static void a_stop_is_heard(void **state)
{
    struct fixture *f = *state;
    int questions = 2;

    f->f.limits.stopped = after_some_questions;
    f->f.limits.stop_ctx = &questions;
    f->f.limits.stall_s = 600;
    f->f.limits.lock_ms = 600000;
    expect_refused(f, "/stall", "/good", ERR_TRANSIENT, EINTR, "stopped");
    questions = 10;
    f->f.limits.pause_ms = 600000;
    expect_refused(f, "", NULL, ERR_TRANSIENT, EINTR, "stopped");
    questions = 2;
    int held = hold(f);
    expect_refused(f, "/good", NULL, ERR_TRANSIENT, EINTR, "stopped");
    close(held);
}

static void what_cannot_be_written_is_said_once(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, small;
    char nowhere[PATH_MAX + 32];

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = BODY / 2, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_refused(f, "/good", "/good", ERR_FATAL, EFBIG, f->path);
    assert_int_equal(f->server.seen->requests, 1); /* the disk is as full for the second mirror */
    expect_refused(f, "/503", "/good", ERR_FATAL, EFBIG, f->path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    expect_whole(f, "/good", NULL);
    snprintf(nowhere, sizeof(nowhere), "%s/none/data.gz", f->folder);
    f->f.path = nowhere;
    expect_refused(f, "/good", NULL, ERR_FATAL, ENOENT, "cannot write ");
}

static void one_process_at_a_time(void **state)
{
    struct fixture *f = *state;
    int held = hold(f);

    f->f.limits.lock_ms = 0;
    expect_refused(f, "/good", NULL, ERR_TRANSIENT, 0, ".fetch.lock: another process has held it for 0 ms");
    /* Whoever held it has brought the file. */
    files_write(f->path, http_server_body(), BODY);
    close(held);
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->server.seen->requests, 0);
}

/* A link instead of what is written would have another file written. */
static void links_are_not_followed(void **state)
{
    struct fixture *f = *state;
    char away[PATH_MAX + 32];

    snprintf(away, sizeof(away), "%s/away", f->folder);
    assert_int_equal(symlink(away, f->lock), 0);
    expect_refused(f, "/good", NULL, ERR_FATAL, ELOOP, ".fetch.lock");
    assert_int_equal(unlink(f->lock), 0);
    assert_int_equal(symlink(away, f->path), 0); /* leads nowhere */
    expect_whole(f, "/good", NULL);
    assert_int_equal(access(away, F_OK), -1);
}

/* Names and folders of the data sets; the sums are the published ones, so a server of our own is refused by them. */
static void data_sets_have_their_places(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum dataset_name name;
        const char *folder, *sha256;
    } cases[] = {{DATASET_FASHION_MNIST, "FashionMNIST/raw", "expected 3aede38d61863908..."},
                 {DATASET_ANY, "MNIST/raw", NULL}}; /* of https: the proxy refuses the tunnel */
    char proxy[64], folder[PATH_MAX + 32];

    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", f->server.port);
    setenv("http_proxy", proxy, 1);
    setenv("https_proxy", proxy, 1);
    snprintf(f->server.seen->proxied, sizeof(f->server.seen->proxied), "/wrong");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(fetch_dataset(f->folder, cases[i].name, &f->f.limits, &f->err), -1);
        assert_non_null(strstr(f->err.msg, "/train-images-idx3-ubyte.gz: "));
        if (cases[i].sha256 && (f->err.kind != ERR_INVALID || !strstr(f->err.msg, cases[i].sha256)))
            fail_msg("%s: not in it: %s", f->err.msg, cases[i].sha256);
        snprintf(folder, sizeof(folder), "%s/%s", f->folder, cases[i].folder);
        assert_int_equal(access(folder, F_OK), 0);
    }
    unsetenv("http_proxy");
    unsetenv("https_proxy");
}

/* The authority that is trusted, and what its server has. */
static void make_tls(struct fixture *f, char ca[static PATH_MAX + 32])
{
    char command[PATH_MAX + sizeof(CERTIFICATES)];

    snprintf(ca, PATH_MAX + 32, "%s/ours.pem", f->folder);
    snprintf(command, sizeof(command), CERTIFICATES, f->folder);
    assert_int_equal(system(command), 0);
    page(f, "body", "HTTP/1.1 200 OK", http_server_body(), BODY);
    f->f.limits.ca_file = ca;
}

static void redirects_stay_within_https(void **state)
{
    struct fixture *f = *state;
    char ca[PATH_MAX + 32], head[256];

    make_tls(f, ca);
    start(f, "good");
    expect_whole(f, "body", NULL);
    snprintf(head, sizeof(head), "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:%d/body", f->tls_port);
    page(f, "moved", head, "", 0);
    expect_whole(f, "moved", NULL);
    page(f, "down", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/body", "", 0);
    expect_refused(f, "down", NULL, ERR_INVALID, 0, "/down: redirected to an address that is not https");
    page(f, "loop", "HTTP/1.1 302 Found\r\nLocation: /loop", "", 0);
    expect_refused(f, "loop", NULL, ERR_INVALID, 0, "/loop: redirected too often");
}

static void only_trusted_certificates_are_believed(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *why;
    } bad[] = {{"stranger", "issuer"}, {"misnamed", "subject name"}, {"over", "expired"}};
    static const char others[] = "(SSL_CERT_FILE names other authorities)";
    char ca[PATH_MAX + 32];

    make_tls(f, ca);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        start(f, bad[i].name);
        expect_refused(f, "body", NULL, ERR_INVALID, 0, others);
        if (!strstr(f->err.msg, bad[i].why))
            fail_msg("%s: %s", bad[i].name, f->err.msg);
        stop(f);
    }
    start(f, "good");
    f->f.limits.ca_file = NULL; /* the system does not know this test */
    expect_refused(f, "body", NULL, ERR_INVALID, 0, others);
    f->f.limits.ca_file = "/nowhere/ca.pem";
    expect_refused(f, "body", NULL, ERR_INVALID, 0, "/nowhere/ca.pem");
    f->f.limits.ca_file = ca;
    expect_whole(f, "body", NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_once),
        TEST(refusals_are_named),
        TEST(the_failure_that_says_most_is_told),
        TEST(the_next_mirror_is_tried),
        TEST(a_stop_is_heard),
        TEST(what_cannot_be_written_is_said_once),
        TEST(one_process_at_a_time),
        TEST(links_are_not_followed),
        TEST(data_sets_have_their_places),
    };
    const struct CMUnitTest tls[] = {
        TEST(redirects_stay_within_https),
        TEST(only_trusted_certificates_are_believed),
    };

    unsetenv("http_proxy");
    unsetenv("https_proxy");
    unsetenv("all_proxy");
    setenv("no_proxy", "127.0.0.1", 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (system("openssl version >/dev/null 2>&1") != 0) {
        fprintf(stderr, "skipped: no openssl command\n");
        return failed ? failed : SKIPPED;
    }
    return failed + cmocka_run_group_tests(tls, NULL, NULL);
}
