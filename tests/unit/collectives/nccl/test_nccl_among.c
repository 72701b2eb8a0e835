/* test_nccl_among.c - a table for some of a table's ranks: sums of its own, calls of both in one order, and that both stand and
 * fall together. */
#include "collectives/group.h"
#include "part.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { N = 100, WORLD = 4, SOON_MS = 400, LATE_MS = 40000 };

/* The ranks of a parity: 0 and 2, 1 and 3. */
static struct collectives *half_of(struct collectives *c, struct err *err)
{
    const int member[] = {c->rank % 2, c->rank % 2 + 2};

    return collectives_group(c, member, 2, err);
}

/* A step as one of a model in stages: numbers go down the ranks, the halves sum theirs, all sum theirs. */
static int step_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    static float way[N], all[N];
    struct err err = {0};
    struct collectives *host = half_of(c, &err);

    (void)arg;
    RANK_CHECK(host);
    struct device_comm *half = d->among(d, host, RANKS_TIMEOUT_MS, &err);
    RANK_CHECK(half && half->world == 2 && half->rank == c->rank / 2);
    RANK_CHECK(!d->among(d, host, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID && !d->lost);
    float *sum = half->buffer(half, N * sizeof(float), RANKS_TIMEOUT_MS, &err);
    RANK_CHECK(sum);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            way[i] = (float)(round + i);
            sum[i] = (float)(c->rank + i);
            all[i] = (float)c->rank;
        }
        if (c->rank % 2)
            RANK_OK(d->recv(d, way, sizeof(way), c->rank - 1, stream, &err));
        else
            RANK_OK(d->send(d, sum, sizeof(way), c->rank + 1, stream, &err));
        RANK_OK(half->all_reduce(half, sum, N, DEVICE_F32, stream, &err));
        RANK_OK(d->all_reduce(d, all, N, DEVICE_F32, stream, &err));
        RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
        for (int i = 0; i < N; i++) {
            RANK_CHECK(way[i] == (float)((c->rank % 2 ? c->rank - 1 : round) + i));
            RANK_CHECK(sum[i] == (float)(2 * (c->rank % 2) + 2 + 2 * i));
            RANK_CHECK(all[i] == 6.0F);
        }
    }
    device_comm_close(half);
    collectives_close(host);
    return 0;
}

static void test_halves_sum_their_own(void **state)
{
    (void)state;
    part_run(WORLD, (struct part){.body = step_body});
}

static int give_back(struct collectives *c, void *arg)
{
    struct part p = {.body = step_body};

    (void)arg;
    RANK_CHECK(part_main(c, &p) == 0);
    const struct fake_nccl_counts *got = part_counts("fake_nccl");
    RANK_CHECK(got->windows == 0 && got->registered == 0 && got->allocated == 0);
    RANK_CHECK(got->finalized == 2 && got->destroyed == 2 && got->aborted == 0);
    return 0;
}

static void test_both_are_given_back(void **state)
{
    (void)state;
    ranks_run(WORLD, give_back, NULL);
}

struct trouble {
    bool in_half; /* what is waited for is the half's sum, else that of all */
    bool crossed; /* rank 0 calls the two in another order than the others */
    int killed;   /* a rank; -1: none */
    int64_t timeout_ms;
    const char *says;
    int exit_code;
};

/* Both tables are lost, whichever it was, and both communicators were told to abort. */
static int trouble_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct trouble *t = arg;
    static float x[N], y[N];
    struct err err = {0}, again = {0};
    struct collectives *host = half_of(c, &err);
    struct device_comm *half = host ? d->among(d, host, RANKS_TIMEOUT_MS, &err) : NULL;

    RANK_CHECK(half);
    if (c->rank == t->killed)
        raise(SIGKILL);
    struct device_comm *first = t->in_half != (t->crossed && c->rank == 0) ? half : d;
    struct device_comm *second = first == d ? half : d;
    if (!first->all_reduce(first, x, N, DEVICE_F32, stream, &err) &&
        !second->all_reduce(second, y, N, DEVICE_F32, stream, &err))
        RANK_CHECK(d->sync(d, stream, "step 7", t->timeout_ms, &err) < 0);
    if (!strstr(err.msg, t->says)) {
        fprintf(stderr, "rank %d: expected \"%s\": %s\n", c->rank, t->says, err.msg);
        return RANK_FAILED;
    }
    RANK_CHECK(d->lost && half->lost && part_counts("fake_nccl")->aborted == 2);
    RANK_CHECK(half->all_reduce(half, x, N, DEVICE_F32, stream, &again) < 0 && !strcmp(err.msg, again.msg));
    RANK_CHECK(d->all_reduce(d, x, N, DEVICE_F32, stream, &again) < 0 && !strcmp(err.msg, again.msg));
    RANK_CHECK(!d->among(d, host, t->timeout_ms, &again) && !strcmp(err.msg, again.msg));
    if (t->killed < 0) /* who leaves first is not missed by others before their own deadline */
        RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &again));
    return collectives_exit_code(&err);
}

static void check_trouble(const struct trouble *t)
{
    struct part p = {.body = trouble_body, .arg = t};
    struct ranks r;

    ranks_start(&r, WORLD, part_main, &p);
    ranks_wait(&r);
    for (int i = 0; i < WORLD; i++) {
        assert_int_equal(WIFSIGNALED(r.status[i]), i == t->killed);
        if (i != t->killed)
            assert_int_equal(WEXITSTATUS(r.status[i]), t->exit_code);
    }
}

/* Ranks that use two tables in two orders would wait for each other for ever. */
static void test_crossed_calls_meet_the_deadline(void **state)
{
    const struct trouble t = {.in_half = true,
                              .crossed = true,
                              .killed = -1,
                              .timeout_ms = SOON_MS,
                              .says = "step 7: not done within 400 ms",
                              .exit_code = 138};

    (void)state;
    check_trouble(&t);
}

static void test_killed_rank_ends_both(void **state)
{
    const struct trouble all = {
        .killed = 1, .timeout_ms = LATE_MS, .says = "rank 1 went away", .exit_code = 140};
    const struct trouble half = {
        .in_half = true, .killed = 3, .timeout_ms = LATE_MS, .says = "rank 3 went away", .exit_code = 140};

    (void)state;
    check_trouble(&all);
    check_trouble(&half);
}

/* The bytes of a send and of its recv differ: nothing that NCCL says, but nothing that ends. */
static int sizes_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    static float x[N];
    struct err err = {0}, left = {0};

    (void)arg;
    RANK_OK(c->rank ? d->recv(d, x, sizeof(x), 0, stream, &err)
                    : d->send(d, x, sizeof(x) / 2, 1, stream, &err));
    RANK_CHECK(d->sync(d, stream, "step 7", SOON_MS, &err) < 0 && d->lost);
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &left)); /* as above */
    return collectives_exit_code(&err);
}

static void test_sizes_that_differ_meet_the_deadline(void **state)
{
    (void)state;
    part_run_failing(2, (struct part){.body = sizes_body}, 138);
}

static int alone_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    struct err err = {0};
    struct collectives *host = half_of(c, &err);

    (void)stream, (void)arg;
    RANK_CHECK(host);
    if (c->rank == 2)
        raise(SIGKILL);
    RANK_CHECK(c->rank % 2 || (!d->among(d, host, RANKS_TIMEOUT_MS, &err) && d->lost));
    return c->rank % 2 ? 140 : collectives_exit_code(&err);
}

static void test_half_that_never_comes_together(void **state)
{
    struct part p = {.body = alone_body};
    struct ranks r;

    (void)state;
    ranks_start(&r, WORLD, part_main, &p);
    ranks_wait(&r);
    assert_true(WIFEXITED(r.status[0]));
    assert_int_equal(WEXITSTATUS(r.status[0]), 140);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_sum_their_own),
        cmocka_unit_test(test_both_are_given_back),
        cmocka_unit_test(test_crossed_calls_meet_the_deadline),
        cmocka_unit_test(test_killed_rank_ends_both),
        cmocka_unit_test(test_sizes_that_differ_meet_the_deadline),
        cmocka_unit_test(test_half_that_never_comes_together),
    };

    part_fakes(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
