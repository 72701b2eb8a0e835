/* test_fetch.c - downloads from a server of our own that resumes, refuses, stalls, cuts off, redirects and never ends. */
#include "files.h"
#include "test.h"

#include "common/fsutil.h"
#include "host/rank_state.h"
#include "trainer/data/fetch.h"
#include "trainer/data/http_server.h"
#include "trainer/data/md5.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BODY = HTTP_SERVER_BODY, CUT = HTTP_SERVER_CUT };

struct fixture {
    char folder[PATH_MAX];
    char path[PATH_MAX + 32];
    char part[PATH_MAX + 64];
    char url[FETCH_MIRRORS_MAX][128];
    char md5[MD5_TEXT_BYTES];
    struct http_server server;
    struct http_seen *seen;
    int port;
    struct fetch f;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct md5 m;

    md5_begin(&m);
    md5_add(&m, http_server_body(), BODY);
    md5_text(&m, f->md5);
    files_folder(f->folder);
    snprintf(f->path, sizeof(f->path), "%s/data.gz", f->folder);
    snprintf(f->part, sizeof(f->part), "%s.part", f->path);
    http_server_start(&f->server);
    f->seen = f->server.seen;
    f->port = f->server.port;
    f->f = (struct fetch){.path = f->path, .md5 = f->md5, .limits = fetch_limits_default(1000)};
    f->f.limits.rounds = 1;
    f->f.limits.pause_ms = 1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    http_server_stop(&f->server);
    files_remove(f->folder);
    free(f);
    return 0;
}

/* From these places of the server, in order; NULL ends them. */
static int get(struct fixture *f, const char *first, const char *second)
{
    const char *const places[] = {first, second};

    for (int i = 0; i < 2; i++) {
        snprintf(f->url[i], sizeof(f->url[i]), "http://127.0.0.1:%d%s", f->port, places[i] ? places[i] : "");
        f->f.urls[i] = places[i] ? f->url[i] : NULL;
    }
    f->err = (struct err){0};
    return fetch(&f->f, &f->err);
}

static void expect_whole(struct fixture *f)
{
    struct buf got = BUF_INIT(2 * BODY);

    if (fs_read(f->path, &got, &f->err))
        fail_msg("%s", f->err.msg);
    assert_int_equal(got.len, BODY);
    assert_memory_equal(got.data, http_server_body(), BODY);
    assert_int_equal(access(f->part, F_OK), -1);
    buf_release(&got);
}

static void expect_refused(struct fixture *f, const char *place, enum err_kind kind, const char *says)
{
    assert_int_equal(get(f, place, NULL), -1);
    if (f->err.kind != kind || !strstr(f->err.msg, says))
        fail_msg("%s: kind %d \"%s\", expected %d \"%s\"", place, f->err.kind, f->err.msg, kind, says);
    assert_int_equal(access(f->path, F_OK), -1);
}

static void fetches_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(get(f, "/good", NULL), 0);
    expect_whole(f);
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->requests, 1);
    unlink(f->path);
    assert_int_equal(get(f, "/moved", NULL), 0);
    expect_whole(f);
}

static void goes_on_where_it_was_cut_off(void **state)
{
    struct fixture *f = *state;
    struct rank_slot *slot = rank_state_join(NULL);
    struct stat st;

    expect_refused(f, "/cut", ERR_TRANSIENT, "/cut: ");
    assert_true(slot->signs > 0); /* what came showed life */
    assert_int_equal(stat(f->part, &st), 0);
    assert_int_equal(st.st_size, CUT);
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->ranges, 1);
    assert_int_equal(f->seen->from, CUT);
    expect_whole(f);
    /* A server that does not resume sends all: the part is dropped, not doubled. */
    unlink(f->path);
    files_write(f->part, http_server_body(), CUT);
    assert_int_equal(get(f, "/whole", NULL), 0);
    expect_whole(f);
    /* A part that is whole needs nothing; one that is too long begins again. */
    unlink(f->path);
    files_write(f->part, http_server_body(), BODY);
    int requests = f->seen->requests;
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->requests, requests);
    expect_whole(f);
    unlink(f->path);
    cleanup_free uint8_t *longer = calloc(1, BODY + 5);
    files_write(f->part, longer, BODY + 5);
    assert_int_equal(get(f, "/good", NULL), 0);
    expect_whole(f);
}

static void a_wrong_checksum_is_never_kept(void **state)
{
    struct fixture *f = *state;

    expect_refused(f, "/wrong", ERR_INVALID, "/wrong: MD5 2bda2998d9b0ee197da142a0447f6725, expected ");
    assert_int_equal(access(f->part, F_OK), -1);
    /* A part of something else: the sum says so, and all is fetched again. */
    files_write(f->part, "other", 5);
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->ranges, 1);
    expect_whole(f);
}

static void refusals_are_named(void **state)
{
    struct fixture *f = *state;

    expect_refused(f, "/none", ERR_NOT_FOUND, "/none: the server answered 404");
    expect_refused(f, "/503", ERR_TRANSIENT, "/503: the server answered 503");
    expect_refused(f, "/loop", ERR_INVALID, "/loop: redirected too often");
    expect_refused(f, "/file", ERR_INVALID, "/file: redirected to an address that is not https");
    assert_true(f->seen->requests <= 3 + FETCH_REDIRECTS_MAX + 1);
    f->f.limits.bytes_max = BODY - 1;
    expect_refused(f, "/good", ERR_INVALID, "/good: larger than 99999 bytes");
    unlink(f->part);
    expect_refused(f, "/endless", ERR_INVALID, "/endless: larger than 99999 bytes");
    f->port = 1; /* nobody listens there */
    expect_refused(f, "/good", ERR_NOT_FOUND, "127.0.0.1");
    assert_int_equal(f->err.code, ENETUNREACH);
}

static void what_may_pass_is_tried_again(void **state)
{
    struct fixture *f = *state;

    f->f.limits.rounds = 3;
    assert_int_equal(get(f, "/busy", NULL), 0);
    assert_int_equal(f->seen->requests, 3);
    expect_whole(f);
    unlink(f->path);
    expect_refused(f, "/503", ERR_TRANSIENT, "/503: the server answered 503");
    assert_int_equal(f->seen->requests, 6);
    expect_refused(f, "/none", ERR_NOT_FOUND, "/none: ");
    assert_int_equal(f->err.code, 0);
    assert_int_equal(f->seen->requests, 7);
    expect_refused(f, "/wrong", ERR_INVALID, "/wrong: ");
    assert_int_equal(f->seen->requests, 8);
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
        {NULL, "/none", ERR_NOT_FOUND, "/none: "},    {"/none", NULL, ERR_NOT_FOUND, "/none: "},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const places[] = {cases[i].first, cases[i].second};
        for (int k = 0; k < 2; k++) {
            snprintf(f->url[k], sizeof(f->url[k]), "http://127.0.0.1:%d%s", places[k] ? f->port : 1,
                     places[k] ? places[k] : "/unreachable");
            f->f.urls[k] = f->url[k];
        }
        f->err = (struct err){0};
        assert_int_equal(fetch(&f->f, &f->err), -1);
        if (f->err.kind != cases[i].kind || !strstr(f->err.msg, cases[i].says))
            fail_msg("case %zu: kind %d \"%s\"", i, f->err.kind, f->err.msg);
        unlink(f->part);
    }
}

static bool after_some_questions(void *ctx)
{
    return --*(int *)ctx < 0;
}

/* In a transfer that stands still, in a pause between rounds, and behind another process's lock. */
static void a_stop_is_heard(void **state)
{
    struct fixture *f = *state;
    int questions = 2;
    char lock[PATH_MAX + 32];

    f->f.limits.stopped = after_some_questions;
    f->f.limits.stop_ctx = &questions;
    f->f.limits.stall_s = 600;
    expect_refused(f, "/stall", ERR_TRANSIENT, "stopped");
    assert_int_equal(f->err.code, EINTR);
    questions = 20;
    f->f.limits.rounds = 1000000;
    f->f.limits.pause_ms = 600000;
    expect_refused(f, "/503", ERR_TRANSIENT, "stopped");
    assert_int_equal(f->err.code, EINTR);
    questions = 2;
    snprintf(lock, sizeof(lock), "%s/.fetch.lock", f->folder);
    int held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(held, LOCK_EX), 0);
    f->f.limits.lock_ms = 600000;
    expect_refused(f, "/good", ERR_TRANSIENT, "stopped");
    assert_int_equal(f->err.code, EINTR);
    close(held);
}

static void the_next_mirror_is_tried(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(get(f, "/none", "/good"), 0);
    expect_whole(f);
    unlink(f->path);
    assert_int_equal(get(f, "/wrong", "/good"), 0);
    expect_whole(f);
    unlink(f->path);
    assert_int_equal(get(f, "/cut", "/good"), 0);
    assert_int_equal(f->seen->from, CUT);
    expect_whole(f);
}

static void a_stalled_server_is_left(void **state)
{
    struct fixture *f = *state;

    f->f.limits.stall_s = 1;
    expect_refused(f, "/stall", ERR_TRANSIENT, "/stall: ");
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->from, CUT);
    expect_whole(f);
}

static void a_full_disk_keeps_what_it_has(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, small;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = CUT, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = get(f, "/good", "/good");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(f->err.kind, ERR_FATAL);
    assert_non_null(strstr(f->err.msg, "cannot write "));
    assert_int_equal(f->seen->requests, 1); /* the disk is as full for the second mirror */
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->from, CUT);
    expect_whole(f);
    /* A folder that is not there is no network error. */
    char nowhere[PATH_MAX + 32];
    snprintf(nowhere, sizeof(nowhere), "%s/none/data.gz", f->folder);
    f->f.path = nowhere;
    assert_int_equal(get(f, "/good", NULL), -1);
    assert_int_equal(f->err.kind, ERR_FATAL);
}

static void one_process_at_a_time(void **state)
{
    struct fixture *f = *state;
    char lock[PATH_MAX + 32];

    snprintf(lock, sizeof(lock), "%s/.fetch.lock", f->folder);
    int held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(held, LOCK_EX), 0);
    f->f.limits.lock_ms = 0;
    expect_refused(f, "/good", ERR_TRANSIENT, ".fetch.lock: another process has held it for 0 ms");
    assert_int_equal(f->seen->requests, 0);
    /* Whoever held it has brought the file. */
    files_write(f->path, http_server_body(), BODY);
    close(held);
    assert_int_equal(get(f, "/good", NULL), 0);
    assert_int_equal(f->seen->requests, 0);
}

/* Names and folders of the data sets; the sums are the published ones, so a server of our own is refused by them. */
/* A link in the place of what is fetched would have another file written. */
static void links_are_not_followed(void **state)
{
    struct fixture *f = *state;
    struct buf got = BUF_INIT(100);
    char away[PATH_MAX + 32];

    snprintf(away, sizeof(away), "%s/away", f->folder);
    assert_int_equal(fs_write_atomic(away, "theirs", 6, &f->err), 0);
    assert_int_equal(symlink(away, f->part), 0);
    expect_refused(f, "/good", ERR_FATAL, ".part");
    assert_int_equal(fs_read(away, &got, &f->err), 0);
    assert_string_equal(buf_str(&got), "theirs");
    buf_release(&got);
    unlink(f->part);
    snprintf(f->part, sizeof(f->part), "%s/.fetch.lock", f->folder);
    unlink(f->part);
    unlink(away);
    assert_int_equal(symlink(away, f->part), 0);
    expect_refused(f, "/good", ERR_FATAL, ".fetch.lock");
    assert_int_equal(access(away, F_OK), -1);
}

static void data_sets_have_their_places(void **state)
{
    struct fixture *f = *state;
    struct fetch_limits limits = fetch_limits_default(1000);
    char mirror[64];
    char folder[PATH_MAX + 32];

    snprintf(mirror, sizeof(mirror), "http://127.0.0.1:%d/wrong", f->port);
    assert_int_equal(fetch_dataset(f->folder, DATASET_FASHION_MNIST, mirror, &limits, &f->err), -1);
    assert_int_equal(f->err.kind, ERR_INVALID);
    assert_non_null(strstr(f->err.msg, "/wrong/train-images-idx3-ubyte.gz: MD5 "));
    assert_non_null(strstr(f->err.msg, "expected 8d4fb7e6c68d591d4c3dfef9ec88bf0d"));
    snprintf(folder, sizeof(folder), "%s/FashionMNIST/raw", f->folder);
    assert_int_equal(access(folder, F_OK), 0);
    assert_int_equal(fetch_dataset(f->folder, DATASET_ANY, mirror, &limits, &f->err), -1);
    assert_non_null(strstr(f->err.msg, "expected f68b3c2dcbeaaa9fbdd348bbdeb94873"));
    snprintf(folder, sizeof(folder), "%s/MNIST/raw", f->folder);
    assert_int_equal(access(folder, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetches_once),
        TEST(goes_on_where_it_was_cut_off),
        TEST(a_wrong_checksum_is_never_kept),
        TEST(refusals_are_named),
        TEST(what_may_pass_is_tried_again),
        TEST(the_failure_that_says_most_is_told),
        TEST(a_stop_is_heard),
        TEST(the_next_mirror_is_tried),
        TEST(a_stalled_server_is_left),
        TEST(a_full_disk_keeps_what_it_has),
        TEST(one_process_at_a_time),
        TEST(links_are_not_followed),
        TEST(data_sets_have_their_places),
    };

    unsetenv("http_proxy");
    unsetenv("all_proxy");
    setenv("no_proxy", "127.0.0.1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
