/* test_nccl.c - the table over NCCL among forked ranks: sums, buffers, meeting and leaving. */
#include "part.h"
#include "test.h"

#include "host/rank_state.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { N = 1000 };

static int sums_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct err none = {0};
    struct err err = none;

    (void)arg;
    RANK_CHECK(d->rank == c->rank && d->world == c->world);
    float *x = d->buffer(d, N * sizeof(float), RANKS_TIMEOUT_MS, &err);
    RANK_CHECK(x);
    for (int i = 0; i < N; i++)
        RANK_CHECK(x[i] == 0.0f); /* zeroed, and summed once */
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < N; i++)
            x[i] = (float)(c->rank + 1) * (float)(i + round);
        RANK_OK(d->all_reduce(d, x, N, DEVICE_F32, stream, &err));
        RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
        for (int i = 0; i < N; i++)
            RANK_CHECK(x[i] == (float)(c->world * (c->world + 1) / 2) * (float)(i + round));
    }
    return 0;
}

static void test_sums(void **state)
{
    (void)state;
    for (int world = 1; world <= 4; world++)
        part_run(world, (struct part){.body = sums_body});
}

static void test_sums_between_pods(void **state)
{
    struct part p = {.body = sums_body};

    (void)state;
    ranks_run_pods(&(struct ranks_layout){.world = 4, .per_pod = 2}, part_main, &p);
}

/* NCCL may take a call in the background. More looks than these would be sched_yield() on a machine full of other
 * processes, where each lasts as long as their time slices. */
static void test_calls_that_are_taken_late(void **state)
{
    (void)state;
    part_run(2, (struct part){.body = sums_body, .fault = "slow:1:300"});
}

static int all_calls_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    enum { EACH = 10 };
    static float mine[EACH], passed[EACH];
    static uint16_t halves[EACH];
    static double exact[EACH];
    struct err err = {0};
    const int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;
    const struct rank_slot *slot = c->slot;
    const uint64_t begun = slot->begun, signs = slot->signs;

    (void)arg;
    for (int i = 0; i < EACH; i++) {
        mine[i] = (float)(100 * c->rank + i);
        halves[i] = 0x3f80; /* 1 in bf16 */
        exact[i] = 1 + i * 0x1p-50;
    }
    RANK_OK(d->all_reduce(d, mine, EACH, DEVICE_F32, stream, &err));
    RANK_OK(d->all_reduce(d, halves, EACH, DEVICE_BF16, stream, &err));
    RANK_OK(d->all_reduce(d, exact, EACH, DEVICE_F64, stream, &err));
    RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
    for (int i = 0; i < EACH; i++) /* 0 + 100 + 200, and i of each */
        RANK_CHECK(mine[i] == (float)(300 + 3 * i));
    RANK_CHECK(halves[EACH - 1] == 0x4040); /* 3 */
    RANK_CHECK(exact[EACH - 1] == c->world * (1 + (EACH - 1) * 0x1p-50));
    /* Rank 0 sends first: in a ring of nothing but sends all would wait for each other. */
    RANK_OK(c->rank ? d->recv(d, passed, sizeof(mine), before, stream, &err)
                    : d->send(d, mine, sizeof(mine), next, stream, &err));
    RANK_OK(c->rank ? d->send(d, mine, sizeof(mine), next, stream, &err)
                    : d->recv(d, passed, sizeof(mine), before, stream, &err));
    RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
    for (int i = 0; i < EACH; i++)
        RANK_CHECK(passed[i] == (float)(300 + 3 * i));
    /* Three collectives; two messages and two waits are signs. */
    RANK_CHECK(slot->begun == begun + 3 && slot->ended == begun + 3);
    RANK_CHECK(slot->signs == signs + 4 && slot->call == RANK_CALL_NONE);
    return 0;
}

static void test_all_calls(void **state)
{
    (void)state;
    part_run(3, (struct part){.body = all_calls_body});
}

static int sixteen_buffers_body(struct collectives *c, struct device_comm *d, cudaStream_t stream,
                                const void *arg)
{
    struct err err = {0};

    (void)stream, (void)arg;
    for (int i = 0; i < DEVICE_BUFFERS_MAX; i++)
        RANK_CHECK(d->buffer(d, 4096, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(!d->buffer(d, 4096, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID && !d->lost);
    return 0;
}

static void test_buffers_are_bounded(void **state)
{
    (void)state;
    part_run(2, (struct part){.body = sixteen_buffers_body});
}

/* --- how buffers are registered, and that everything is given back */

struct registered {
    const char *library, *fault;
    int windows, registered;
};

static int give_back(struct collectives *c, void *arg)
{
    const struct registered *want = arg;
    struct part p = {.body = sums_body, .library = want->library, .fault = want->fault};

    RANK_CHECK(part_main(c, &p) == 0);
    const struct fake_nccl_counts *got = part_counts(want->library);
    RANK_CHECK(got->windows_made == want->windows && got->registered_made == want->registered);
    RANK_CHECK(got->windows == 0 && got->registered == 0 && got->allocated == 0);
    RANK_CHECK(got->finalized == 1 && got->destroyed == 1 && got->aborted == 0);
    return 0;
}

static void test_buffers_are_registered_and_given_back(void **state)
{
    struct registered all[] = {
        {"fake_nccl", NULL, 1, 0}, {"fake_nccl", "no-window:0:0", 0, 1}, {"fake_nccl_old", NULL, 0, 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        ranks_run(1, give_back, &all[i]);
    ranks_run(3, give_back, &all[0]);
}

static int refused_window_body(struct collectives *c, struct device_comm *d, cudaStream_t stream,
                               const void *arg)
{
    struct err err = {0};

    (void)stream, (void)arg;
    if (c->rank == 0) {
        RANK_CHECK(!d->buffer(d, 4096, RANKS_TIMEOUT_MS, &err) && d->lost);
        RANK_CHECK(strstr(err.msg, "registering a buffer: NCCL: invalid usage"));
        return 1;
    }
    RANK_CHECK(!d->buffer(d, 4096, RANKS_TIMEOUT_MS, &err) && d->lost && err.kind == ERR_PEER);
    return 1;
}

/* A buffer that not all ranks have made known must not be used by any. */
static void test_window_that_one_rank_is_refused(void **state)
{
    (void)state;
    part_run_failing(2, (struct part){.body = refused_window_body, .fault = "bad-window:0:0"}, 1);
}

/* --- ranks that share a GPU */

struct shared {
    const char *library, *variable;
    bool told_apart;
};

static int share_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct shared *want = arg;
    const char *host = getenv("NCCL_HOSTID");
    char own[40];

    (void)d, (void)stream;
    snprintf(own, sizeof(own), "torchkeeper-rank-%d", c->rank);
    RANK_CHECK(want->told_apart ? host && strcmp(host, own) == 0 : !host);
    return 0;
}

static void test_ranks_that_share_a_gpu(void **state)
{
    static const struct shared all[] = {{"fake_nccl_old", "1", true},
                                        {"fake_nccl_old", "0", false},
                                        {"fake_nccl_old", NULL, false},
                                        {"fake_nccl", "1", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i].variable)
            setenv("NCCL_MULTI_RANK_GPU_ENABLE", all[i].variable, 1);
        part_run(2, (struct part){.body = share_body, .arg = &all[i], .library = all[i].library});
        unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    }
}

/* --- meeting */

static int nothing_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    (void)c, (void)d, (void)stream, (void)arg;
    return 0;
}

static void test_meeting_that_fails(void **state)
{
    (void)state;
    part_run_failing(2, (struct part){.body = nothing_body, .fault = "no-id:0:0"}, 138);
    part_run_failing(
        2, (struct part){.body = nothing_body, .fault = "late-init:1:0", .timeout_ms = 400, .stays = true},
        138);
    part_run_failing(1, (struct part){.body = nothing_body, .fault = "no-init:0:0"}, 1);
}

static int dies_before(struct collectives *c, void *arg)
{
    if (c->rank == 1)
        raise(SIGKILL);
    return part_main(c, arg);
}

static void test_rank_that_dies_before_meeting(void **state)
{
    struct part p = {.body = nothing_body};
    struct ranks r;

    (void)state;
    ranks_start(&r, 2, dies_before, &p);
    ranks_wait(&r);
    assert_int_equal(WEXITSTATUS(r.status[0]), 140);
}

static void test_leaving_is_bounded(void **state)
{
    (void)state;
    part_run(2, (struct part){.body = nothing_body, .fault = "no-finalize:0:0"});
}

static int refuses_library(struct collectives *c, void *arg)
{
    const char *const *names = arg; /* the library, and what is reported */
    struct err err = {0};

    RANK_CHECK(!nccl_open(c, part_library(names[0]), RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID);
    if (!strstr(err.msg, names[1])) {
        fprintf(stderr, "expected \"%s\": %s\n", names[1], err.msg);
        return RANK_FAILED;
    }
    return 0;
}

static void test_libraries_that_will_not_do(void **state)
{
    const char *all[][2] = {{"nowhere", "--backend nccl needs NCCL 2 or newer"},
                            {"fake_nccl_ancient", "NCCL 2.18: expected 2.19 or newer"},
                            {"fake_nccl_damaged", "no ncclRecv"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        ranks_run(1, refuses_library, all[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_between_pods),
        cmocka_unit_test(test_calls_that_are_taken_late),
        cmocka_unit_test(test_all_calls),
        cmocka_unit_test(test_buffers_are_bounded),
        cmocka_unit_test(test_buffers_are_registered_and_given_back),
        cmocka_unit_test(test_window_that_one_rank_is_refused),
        cmocka_unit_test(test_ranks_that_share_a_gpu),
        cmocka_unit_test(test_meeting_that_fails),
        cmocka_unit_test(test_rank_that_dies_before_meeting),
        cmocka_unit_test(test_leaving_is_bounded),
        cmocka_unit_test(test_libraries_that_will_not_do),
    };

    part_fakes(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
