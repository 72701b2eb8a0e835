/* test_pod_data.c - one copy for all ranks where the machine allows it, equal copies where it does not, and
 * who says what when it fails. */
#include "test.h"

#include "collectives/ranks.h"
#include "trainer/data/pod_data.h"
#include "trainer/small_data.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534 };

struct task {
    char dir[SMALL_DATA_DIR_BYTES];
    bool hidden; /* no rank may look into another */
};

static const struct data_spec SPEC = {.format = SOURCE_IDX, .stats = 1, .std = {1}};

static struct pod_data_options options(const struct task *task, const struct collectives *c)
{
    return (struct pod_data_options){.source = {.spec = &SPEC, .dir = task->dir},
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
    RANK_CHECK(d.shared == (c->rank != 0 && !task->hidden));
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
    (void)state;
    struct task task = {0};

    small_data_make(task.dir);
    ranks_run(1, sees_the_data, &task);
    ranks_run(4, sees_the_data, &task);
    small_data_remove(task.dir);
}

static void ranks_that_may_not_share_load_their_own(void **state)
{
    (void)state;
    struct task task = {.hidden = true};

    small_data_make(task.dir);
    ranks_run(3, sees_the_data, &task);
    small_data_remove(task.dir);
}

/* A label out of range in the training labels. */
static int meets_bad_data(struct collectives *c, void *arg)
{
    const struct pod_data_options o = options(arg, c);
    struct err err = {0};
    struct pod_data d;

    RANK_CHECK(pod_data_open(&d, c, &o, &err) == -1);
    RANK_CHECK(!d.mem);
    RANK_CHECK(err.kind == (c->rank == 0 ? ERR_INVALID : ERR_PEER));
    RANK_CHECK(strstr(err.msg, c->rank == 0 ? "train-labels" : "rank 0 could not load the data set"));
    return 0;
}

static void only_the_loader_says_what_is_wrong(void **state)
{
    (void)state;
    struct task task = {0};
    char path[128];

    small_data_make(task.dir);
    snprintf(path, sizeof(path), "%s/train-labels-idx1-ubyte", task.dir);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 8, SEEK_SET), 0);
    fputc(10, f);
    assert_int_equal(fclose(f), 0);
    ranks_run(3, meets_bad_data, &task);
    small_data_remove(task.dir);
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
    (void)state;
    struct task task = {0};

    small_data_make(task.dir);
    ranks_run(3, was_told_otherwise, &task);
    ranks_run(2, has_a_wrong_local_rank, &task);
    small_data_remove(task.dir);
}

/* Files that come or go while a pod starts: each rank maps what it finds. */
static int finds_other_tokens(struct collectives *c, void *arg)
{
    const char *dir = arg;
    const struct data_spec spec = {.format = SOURCE_TOKENS, .rows = 4, .train = c->rank ? "*.txt" : "a.txt"};
    const struct task task = {0};
    struct pod_data_options o = options(&task, c);
    struct err err = {0};
    struct pod_data d;

    o.source = (struct source_options){.spec = &spec, .dir = dir};
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
    (void)state;
    char dir[SMALL_DATA_DIR_BYTES], path[128];

    small_data_make(dir);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%c.txt", dir, 'a' + i);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs("0123456789", f);
        assert_int_equal(fclose(f), 0);
    }
    ranks_run(2, finds_other_tokens, dir);
    small_data_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_one_copy),
        cmocka_unit_test(ranks_that_may_not_share_load_their_own),
        cmocka_unit_test(only_the_loader_says_what_is_wrong),
        cmocka_unit_test(ranks_that_disagree_are_refused),
        cmocka_unit_test(tokens_are_the_same_for_a_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
