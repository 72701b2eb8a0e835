/* test_pod_data.c - one copy for all ranks where the machine allows it, equal copies where it does not, and
 * who reports what when it fails. */
#include "test.h"

#include "collectives/ranks.h"
#include "host/memory_file.h"
#include "host/rank_contract.h"
#include "trainer/data/kept.h"
#include "trainer/data/pod_data.h"
#include "trainer/small_data.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534 };

struct task {
    char dir[SMALL_DATA_DIR_BYTES];
    bool hidden; /* no rank may look into another */
    int memory;  /* the launcher's */
    char where[MEMORY_FILE_BYTES];
    const char *kept; /* `where`, when the ranks' environment names it */
    bool found;       /* an earlier attempt has left the data there */
    int64_t now_ms;   /* 0: long after the files were made */
    uint8_t pixel;    /* the first; 0: as the file was made */
};

static const struct data_spec SPEC = {.format = &format_idx, .stats = 1, .std = {1}};

static struct pod_data_options options(const struct task *task, const struct collectives *c)
{
    return (struct pod_data_options){.source = {.spec = &SPEC, .dir = task->dir},
                                     .kept = task->kept,
                                     .now_ms = task->now_ms ? task->now_ms : (time(NULL) + 1000) * 1000,
                                     .local_rank = c->rank,
                                     .fingerprint = 7,
                                     .timeout_ms = RANKS_TIMEOUT_MS};
}

/* Every rank sees the same pixels and labels, and can hold them when the leader is gone. */
static int sees_the_data(struct collectives *c, void *arg)
{
    const struct task *task = arg;
    const struct pod_data_options o = options(task, c);
    struct err err = {0};
    uint64_t sums[RANKS_MAX];
    uint64_t sum = 0;

    if (task->hidden && getuid() == 0)
        RANK_CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
    RANK_CHECK(!prctl(PR_SET_DUMPABLE, task->hidden ? 0 : 1));
    cleanup_pod_data struct pod_data d = {0};
    RANK_CHECK(!pod_data_open(&d, c, &o, &err));
    RANK_CHECK((d.borrowed != NULL) == (c->rank != 0 && !task->hidden));
    RANK_CHECK(d.found == (c->rank == 0 && task->found));
    RANK_CHECK(!task->pixel || *(const uint8_t *)d.set.train.x == task->pixel);
    RANK_CHECK(d.set.train.items == SMALL_DATA_TRAIN && d.set.test.items == SMALL_DATA_TEST);
    for (int i = 0; i < SMALL_DATA_TRAIN * SMALL_DATA_SIDE * SMALL_DATA_SIDE; i++)
        sum = sum * 31 + ((const uint8_t *)d.set.train.x)[i];
    for (int i = 0; i < SMALL_DATA_TEST; i++)
        RANK_CHECK(d.set.test.labels[i] == i % 10);
    RANK_CHECK(!c->all_gather(c, &sum, sizeof(sum), sums, RANKS_TIMEOUT_MS, &err));
    for (int r = 0; r < c->world; r++)
        RANK_CHECK(sums[r] == sum && sum != 0);
    if (c->rank == 0)
        pod_data_close(&d);
    RANK_CHECK(!c->barrier(c, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(c->rank == 0 || d.set.train.labels[11] == 1);
    return 0;
}

static void ranks_share_one_copy(void **state)
{
    struct task *task = *state;

    ranks_run(1, sees_the_data, task);
    ranks_run(4, sees_the_data, task);
}

static void ranks_that_may_not_share_load_their_own(void **state)
{
    struct task *task = *state;

    task->hidden = true;
    ranks_run(3, sees_the_data, task);
}

/* The file has another time of its change then, as with files that are no longer fresh. */
static void change(const char *dir, const char *file, long at, int byte)
{
    char path[128];
    struct stat before, after;

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    assert_int_equal(stat(path, &before), 0);
    do {
        FILE *f = fopen(path, "r+");
        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        fputc(byte, f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(stat(path, &after), 0);
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* Each run of ranks is an attempt. */
static void a_later_attempt_decodes_nothing(void **state)
{
    struct task *task = *state;

    task->kept = task->where;
    ranks_run(3, sees_the_data, task);
    task->found = true;
    task->pixel = 201; /* in the memory alone */
    assert_int_equal(pwrite(task->memory, &task->pixel, 1, KEPT_HEAD_BYTES), 1);
    ranks_run(3, sees_the_data, task);
    ranks_run(1, sees_the_data, task);
    /* Another pixel, in a file of the same size. */
    task->pixel = 77;
    change(task->dir, "train-images-idx3-ubyte", 16, task->pixel);
    task->found = false;
    ranks_run(2, sees_the_data, task);
    task->found = true;
    ranks_run(2, sees_the_data, task);
}

/* Not even when the memory could hold them: written once more, they would look like the present ones. */
static void files_that_just_changed_are_not_kept(void **state)
{
    struct task *task = *state;

    task->kept = task->where;
    task->now_ms = time(NULL) * 1000;
    ranks_run(2, sees_the_data, task);
    assert_int_equal(lseek(task->memory, 0, SEEK_END), 0);
    ranks_run(2, sees_the_data, task);
}

/* A label out of range in the training labels. */
static int meets_bad_data(struct collectives *c, void *arg)
{
    const struct pod_data_options o = options(arg, c);
    struct err err = {0};
    struct pod_data d;

    RANK_CHECK(pod_data_open(&d, c, &o, &err) == -1);
    RANK_CHECK(!d.memory && !d.borrowed);
    RANK_CHECK(err.kind == (c->rank == 0 ? ERR_INVALID : ERR_PEER));
    RANK_CHECK(strstr(err.msg, c->rank == 0 ? "train-labels" : "rank 0 could not load the data set"));
    return 0;
}

/* Nor do bad files leave anything that the next attempt would take for good. */
static void only_the_loader_says_what_is_wrong(void **state)
{
    struct task *task = *state;

    change(task->dir, "train-labels-idx1-ubyte", 8, 10);
    ranks_run(3, meets_bad_data, task);
    task->kept = task->where;
    ranks_run(2, meets_bad_data, task);
    ranks_run(2, meets_bad_data, task);
}

static int was_told_otherwise(struct collectives *c, void *arg)
{
    struct pod_data_options o = options(arg, c);
    struct err err = {0};
    struct pod_data d;

    o.fingerprint += (uint32_t)c->rank / 2;
    RANK_CHECK(pod_data_open(&d, c, &o, &err) == -1);
    RANK_CHECK(err.kind == ERR_INVALID);
    RANK_CHECK(strstr(err.msg, "ranks 0 and 2 were started with different"));
    return 0;
}

static int has_a_wrong_local_rank(struct collectives *c, void *arg)
{
    struct pod_data_options o = options(arg, c);
    struct err err = {0};
    struct pod_data d;

    o.local_rank = 1 + c->rank;
    RANK_CHECK(pod_data_open(&d, c, &o, &err) == -1);
    RANK_CHECK(err.kind == ERR_INVALID);
    RANK_CHECK(strstr(err.msg, "LOCAL_RANK: "));
    return 0;
}

static void ranks_that_disagree_are_refused(void **state)
{
    ranks_run(3, was_told_otherwise, *state);
    ranks_run(2, has_a_wrong_local_rank, *state);
}

/* Files that come or go while a pod starts: each rank maps what it finds. */
static int finds_other_tokens(struct collectives *c, void *arg)
{
    const struct task *task = arg;
    const struct data_spec spec = {.format = &format_tokens, .rows = 4, .train = c->rank ? "*.txt" : "a.txt"};
    struct pod_data_options o = options(task, c);
    struct err err = {0};
    struct pod_data d;

    o.source = (struct source_options){.spec = &spec, .dir = task->dir};
    int rc = pod_data_open(&d, c, &o, &err);
    if (c->rank == 0) {
        pod_data_close(&d);
        return rc;
    }
    RANK_CHECK(rc == -1 && err.kind == ERR_INVALID);
    RANK_CHECK(strstr(err.msg, "ranks 0 and 1 have data sets of different sizes"));
    RANK_CHECK(!d.source);
    return 0;
}

static void tokens_are_the_same_for_a_pod(void **state)
{
    struct task *task = *state;
    char path[128];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%c.txt", task->dir, 'a' + i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs("0123456789", f);
        assert_int_equal(fclose(f), 0);
    }
    ranks_run(2, finds_other_tokens, task);
}

static int setup(void **state)
{
    static struct task task;

    task = (struct task){0};
    task.memory = memory_file_make(CONTRACT_KEPT_DATA_NAME, 0, task.where);
    small_data_make(task.dir);
    *state = &task;
    return 0;
}

static int teardown(void **state)
{
    struct task *task = *state;

    small_data_remove(task->dir);
    return close(task->memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ranks_share_one_copy),
        TEST(ranks_that_may_not_share_load_their_own),
        TEST(a_later_attempt_decodes_nothing),
        TEST(files_that_just_changed_are_not_kept),
        TEST(only_the_loader_says_what_is_wrong),
        TEST(ranks_that_disagree_are_refused),
        TEST(tokens_are_the_same_for_a_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
