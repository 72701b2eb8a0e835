/* test_nccl.c - the table over NCCL among forked ranks, with an NCCL that can be told to stall, fail and die. */
#include "trainer/collectives/nccl/nccl.h"

#include "common/clock.h"
#include "fake_cudart.h"
#include "fake_nccl.h"
#include "ranks.h"
#include "test.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char *fakes; /* the folder of the fake libraries */

static const char *library(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s.so", fakes, name);
    return path;
}

static const struct fake_nccl_counts *counts(const char *name)
{
    void *handle = dlopen(library(name), RTLD_NOW | RTLD_NOLOAD);
    const struct fake_nccl_counts *(*get)(void);
    void *symbol = handle ? dlsym(handle, "fake_nccl_counts") : NULL;

    if (!symbol)
        abort();
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

/* A rank's part of a test. */
struct part {
    int (*body)(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg);
    const void *arg;
    const char *library;
    const char *fault;
    int64_t timeout_ms;
};

static int part_main(struct collectives *c, void *arg)
{
    const struct part *p = arg;
    struct err err = {0};
    cudaStream_t stream;

    if (p->fault)
        setenv("FAKE_NCCL", p->fault, 1);
    RANK_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    struct device_comm *d = nccl_open(c, library(p->library ? p->library : "fake_nccl"),
                                      p->timeout_ms ? p->timeout_ms : RANKS_TIMEOUT_MS, &err);
    if (!d) {
        fprintf(stderr, "rank %d: %s\n", c->rank, err.msg);
        return collectives_exit_code(&err);
    }
    int rc = p->body(c, d, stream, p->arg);
    device_comm_close(d);
    (void)cudaStreamDestroy(stream);
    return rc;
}

static void run_parts(int world, struct part p)
{
    ranks_run(world, part_main, &p);
}

/* As run_parts; every rank ends with exit_code. */
static void run_failing(int world, struct part p, int exit_code)
{
    struct ranks r;

    ranks_start(&r, world, part_main, &p);
    ranks_wait(&r);
    for (int i = 0; i < world; i++) {
        assert_true(WIFEXITED(r.status[i]));
        assert_int_equal(WEXITSTATUS(r.status[i]), exit_code);
    }
}

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
        run_parts(world, (struct part){.body = sums_body});
}

static void test_sums_between_pods(void **state)
{
    struct part p = {.body = sums_body};

    (void)state;
    ranks_run_pods(&(struct ranks_layout){.world = 4, .per_pod = 2}, part_main, &p);
}

static int all_calls_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    enum { EACH = 10 };
    static float all[4 * EACH], mine[EACH];
    static uint16_t halves[EACH];
    struct err err = {0};
    const int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;

    (void)arg;
    for (int i = 0; i < EACH; i++) {
        mine[i] = (float)(100 * c->rank + i);
        halves[i] = 0x3f80; /* 1 in bf16 */
    }
    RANK_OK(d->all_gather(d, mine, all, EACH, DEVICE_F32, stream, &err));
    RANK_OK(d->all_reduce(d, halves, EACH, DEVICE_BF16, stream, &err));
    RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
    for (int r = 0; r < c->world; r++)
        for (int i = 0; i < EACH; i++)
            RANK_CHECK(all[r * EACH + i] == (float)(100 * r + i));
    RANK_CHECK(halves[EACH - 1] == 0x4040); /* 3 */
    RANK_OK(d->reduce_scatter(d, all, mine, EACH, DEVICE_F32, stream, &err));
    RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
    for (int i = 0; i < EACH; i++)
        RANK_CHECK(mine[i] == (float)(c->world * (100 * c->rank + i)));
    RANK_OK(d->broadcast(d, mine, sizeof(mine), 1, stream, &err));
    RANK_OK(d->send(d, mine, sizeof(mine), next, stream, &err));
    RANK_OK(d->recv(d, all, sizeof(mine), before, stream, &err));
    RANK_OK(d->sync(d, stream, "step", RANKS_TIMEOUT_MS, &err));
    for (int i = 0; i < EACH; i++)
        RANK_CHECK(all[i] == (float)(c->world * (100 + i)));
    return 0;
}

static void test_all_calls(void **state)
{
    (void)state;
    run_parts(3, (struct part){.body = all_calls_body});
}

/* What a rank asks for wrongly leaves the table as it was. */
static int refused_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    static char bytes[8192];
    struct err err = {0};

    RANK_CHECK(d->broadcast(d, bytes, 1, c->world, stream, &err) < 0 && err.kind == ERR_INVALID);
    RANK_CHECK(strstr(err.msg, "expected 0..1"));
    RANK_CHECK(d->send(d, bytes, 1, -1, stream, &err) < 0 && d->recv(d, bytes, 1, 2, stream, &err) < 0);
    RANK_CHECK(!d->buffer(d, 0, RANKS_TIMEOUT_MS, &err) && !d->buffer(d, 6, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(!d->buffer(d, SIZE_MAX - 3, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID);
    RANK_CHECK(d->sync(d, stream, "step", -1, &err) < 0 && err.kind == ERR_INVALID);
    RANK_CHECK(d->send(d, bytes, sizeof(bytes), 0, stream, &err) < 0 &&
               err.kind == ERR_INVALID); /* NCCL's own */
    RANK_CHECK(!d->lost);
    return sums_body(c, d, stream, arg);
}

static void test_refused_arguments_break_nothing(void **state)
{
    (void)state;
    run_parts(2, (struct part){.body = refused_body});
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
    run_parts(2, (struct part){.body = sixteen_buffers_body});
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
    const struct fake_nccl_counts *got = counts(want->library);
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

/* --- faults */

struct fails {
    enum err_kind kind;
    const char *says;
    int64_t timeout_ms;
    bool at_deadline; /* not before it */
    int aborted;      /* calls of ncclCommAbort */
};

/* One round in which the fault strikes; the table is lost, and says so again. */
static int fails_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct fails *f = arg;
    static float x[N];
    struct err err = {0}, again = {0};
    const int64_t began_ms = clock_mono_ms();

    if (d->all_reduce(d, x, N, DEVICE_F32, stream, &err) == 0)
        RANK_CHECK(d->sync(d, stream, "step 7", f->timeout_ms, &err) < 0);
    RANK_CHECK(!f->at_deadline || clock_mono_ms() - began_ms >= f->timeout_ms);
    RANK_CHECK(f->at_deadline || clock_mono_ms() - began_ms < f->timeout_ms / 2);
    if (err.kind != f->kind || !strstr(err.msg, f->says)) {
        fprintf(stderr, "rank %d: expected \"%s\": %s\n", c->rank, f->says, err.msg);
        return RANK_FAILED;
    }
    RANK_CHECK(d->lost && counts("fake_nccl")->aborted == f->aborted);
    RANK_CHECK(d->all_reduce(d, x, N, DEVICE_F32, stream, &again) < 0 && strcmp(err.msg, again.msg) == 0);
    RANK_CHECK(d->sync(d, stream, "step 8", f->timeout_ms, &again) < 0 && strcmp(err.msg, again.msg) == 0);
    RANK_CHECK(!d->buffer(d, 64, f->timeout_ms, &again) && again.kind == f->kind);
    return collectives_exit_code(&err);
}

static void test_stalled_rank_meets_the_deadline(void **state)
{
    const struct fails f = {ERR_TIMEOUT, "step 7: not done within 400 ms", 400, true, 1};

    (void)state;
    run_failing(3, (struct part){.body = fails_body, .arg = &f, .fault = "stall:1:0"}, 138);
}

/* ncclCommAbort waits for recorded graphs, for ever if need be: we do not. */
static void test_abort_that_never_returns(void **state)
{
    const struct fails f = {ERR_TIMEOUT, "step 7", 300, true, 1};

    (void)state;
    run_failing(2, (struct part){.body = fails_body, .arg = &f, .fault = "hang:0:0"}, 138);
}

/* Its rank reports it at once; the other one, who waits for that rank, when it has gone. */
static void test_error_of_the_network(void **state)
{
    const struct fails f = {ERR_PEER, "", 40000, false, 1};

    (void)state;
    run_failing(2, (struct part){.body = fails_body, .arg = &f, .fault = "remote:0:0"}, 140);
}

static int own_error_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct fails *own = arg, peer = {ERR_PEER, "rank 0 went away", 40000, false, 1};

    return fails_body(c, d, stream, c->rank == 0 ? own : &peer);
}

/* The root cause keeps its own exit status, 138 or 1, those it takes along have 140. */
static void root_cause(const char *fault, const struct fails *own, int exit_code)
{
    struct part p = {.body = own_error_body, .arg = own, .fault = fault};
    struct ranks r;

    ranks_start(&r, 3, part_main, &p);
    ranks_wait(&r);
    for (int i = 0; i < 3; i++) {
        assert_true(WIFEXITED(r.status[i]));
        assert_int_equal(WEXITSTATUS(r.status[i]), i == 0 ? exit_code : 140);
    }
}

static void test_own_error_takes_the_others_along(void **state)
{
    const struct fails own = {ERR_TRANSIENT, "unhandled system error: the fake's own words", 40000, false, 1};
    const struct fails usage = {ERR_INVALID, "all_reduce: NCCL: invalid usage", 40000, false, 1};

    (void)state;
    root_cause("system:0:0", &own, 138);
    root_cause("usage:0:0", &usage, 1);
}

static int broken_gpu_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    if (c->rank == 0)
        fake_stream_break(stream, cudaErrorIllegalAddress);
    return own_error_body(c, d, stream, arg);
}

static void test_broken_gpu(void **state)
{
    const struct fails own = {ERR_TRANSIENT, "the GPU: an illegal memory access", 40000, false, 1};
    struct part p = {.body = broken_gpu_body, .arg = &own};
    struct ranks r;

    (void)state;
    ranks_start(&r, 2, part_main, &p);
    ranks_wait(&r);
    assert_int_equal(WEXITSTATUS(r.status[0]), 138);
    assert_int_equal(WEXITSTATUS(r.status[1]), 140);
}

static int killed_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct fails f = {ERR_PEER, "rank 1 went away", 40000, false, 1};

    (void)arg;
    if (c->rank == 1)
        raise(SIGKILL);
    return fails_body(c, d, stream, &f);
}

/* NCCL within a host notices nothing; the host table does. */
static void test_killed_rank(void **state)
{
    struct part p = {.body = killed_body};
    struct ranks r;

    (void)state;
    ranks_start(&r, 3, part_main, &p);
    ranks_wait(&r);
    assert_true(WIFSIGNALED(r.status[1]));
    assert_int_equal(WEXITSTATUS(r.status[0]), 140);
    assert_int_equal(WEXITSTATUS(r.status[2]), 140);
}

/* The last work of a rank may end after a peer has left: that is no loss. */
struct late {
    struct collectives *c;
    int asked_after;
};

static bool late_step(void *arg)
{
    struct late *l = arg;
    struct err err;

    if (!l->asked_after && !collectives_look(l->c, "late", &err))
        return false;
    return l->asked_after++ >= 10;
}

static int left_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    struct late late = {.c = c};
    struct err err = {0};

    (void)arg;
    if (c->rank == 1)
        _exit(0);
    fake_stream_push(stream, late_step, &late);
    RANK_OK(d->sync(d, stream, "last step", 40000, &err));
    RANK_CHECK(late.asked_after > 0 && !d->lost);
    _exit(0);
}

static void test_peer_that_has_finished(void **state)
{
    (void)state;
    run_parts(2, (struct part){.body = left_body});
}

static void test_calls_that_are_taken_late(void **state)
{
    (void)state;
    run_parts(2, (struct part){.body = sums_body, .fault = "slow:1:3000"});
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
    run_failing(2, (struct part){.body = nothing_body, .fault = "no-id:0:0"}, 138);
    run_failing(2, (struct part){.body = nothing_body, .fault = "late-init:1:0", .timeout_ms = 400}, 138);
    run_failing(1, (struct part){.body = nothing_body, .fault = "no-init:0:0"}, 1);
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
    run_parts(2, (struct part){.body = nothing_body, .fault = "no-finalize:0:0"});
}

static int refuses_library(struct collectives *c, void *arg)
{
    const char *const *names = arg; /* the library, and what is said */
    struct err err = {0};

    RANK_CHECK(!nccl_open(c, library(names[0]), RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID);
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

static void test_flags_ride_as_numbers(void **state)
{
    float sums[DEVICE_FLAGS] = {0}, put[DEVICE_FLAGS];
    const uint32_t raised[] = {COLLECTIVES_SAVE, 0, COLLECTIVES_SAVE | COLLECTIVES_STOP_TERM, 1u << 15};

    (void)state;
    for (size_t r = 0; r < ARRAY_LEN(raised); r++) {
        device_flags_put(raised[r], put);
        for (int i = 0; i < DEVICE_FLAGS; i++)
            sums[i] += put[i];
    }
    assert_int_equal(device_flags_get(sums), COLLECTIVES_SAVE | COLLECTIVES_STOP_TERM | 1u << 15);
    sums[1] = NAN;
    assert_int_equal(device_flags_get(sums) & 2, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_between_pods),
        cmocka_unit_test(test_all_calls),
        cmocka_unit_test(test_refused_arguments_break_nothing),
        cmocka_unit_test(test_buffers_are_bounded),
        cmocka_unit_test(test_buffers_are_registered_and_given_back),
        cmocka_unit_test(test_stalled_rank_meets_the_deadline),
        cmocka_unit_test(test_abort_that_never_returns),
        cmocka_unit_test(test_error_of_the_network),
        cmocka_unit_test(test_own_error_takes_the_others_along),
        cmocka_unit_test(test_broken_gpu),
        cmocka_unit_test(test_killed_rank),
        cmocka_unit_test(test_peer_that_has_finished),
        cmocka_unit_test(test_calls_that_are_taken_late),
        cmocka_unit_test(test_meeting_that_fails),
        cmocka_unit_test(test_rank_that_dies_before_meeting),
        cmocka_unit_test(test_leaving_is_bounded),
        cmocka_unit_test(test_libraries_that_will_not_do),
        cmocka_unit_test(test_flags_ride_as_numbers),
    };

    fakes = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
