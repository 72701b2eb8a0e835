/* test_nccl_faults.c - an NCCL that stalls, fails and dies: who notices, when, and with what exit status. */
#include "common/clock.h"
#include "fake_cudart.h"
#include "part.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };

struct fails {
    enum err_kind kind;
    const char *says;
    int64_t timeout_ms;
    bool at_deadline; /* not before it */
    int aborted;      /* calls of ncclCommAbort */
};

/* One round in which the fault strikes; the table is lost, and returns the error again. */
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
    RANK_CHECK(d->lost && part_counts("fake_nccl")->aborted == f->aborted);
    RANK_CHECK(d->all_reduce(d, x, N, DEVICE_F32, stream, &again) < 0 && strcmp(err.msg, again.msg) == 0);
    RANK_CHECK(d->sync(d, stream, "step 8", f->timeout_ms, &again) < 0 && strcmp(err.msg, again.msg) == 0);
    RANK_CHECK(!d->buffer(d, 64, f->timeout_ms, &again) && again.kind == f->kind);
    return collectives_exit_code(&err);
}

static void test_stalled_rank_meets_the_deadline(void **state)
{
    const struct fails f = {ERR_TIMEOUT, "step 7: not done within 400 ms", 400, true, 1};

    (void)state;
    part_run_failing(3, (struct part){.body = fails_body, .arg = &f, .fault = "stall:1:0", .stays = true},
                     138);
}

/* ncclCommAbort waits for recorded graphs, for ever if need be: we do not. */
static void test_abort_that_never_returns(void **state)
{
    const struct fails f = {ERR_TIMEOUT, "step 7", 300, true, 1};

    (void)state;
    part_run_failing(2, (struct part){.body = fails_body, .arg = &f, .fault = "hang:0:0", .stays = true},
                     138);
}

/* Its rank reports it at once; the other one, who waits for that rank, when it has gone. */
static void test_error_of_the_network(void **state)
{
    const struct fails f = {ERR_PEER, "", 400000, false, 1};

    (void)state;
    part_run_failing(2, (struct part){.body = fails_body, .arg = &f, .fault = "remote:0:0"}, 140);
}

static int own_error_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    const struct fails *own = arg, peer = {ERR_PEER, "rank 0 went away", 400000, false, 1};

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
    const struct fails own = {ERR_TRANSIENT, "unhandled system error: the fake's own words", 400000, false,
                              1};
    const struct fails usage = {ERR_INVALID, "all_reduce: NCCL: invalid usage", 400000, false, 1};

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
    const struct fails own = {ERR_TRANSIENT, "the GPU: an illegal memory access", 400000, false, 1};
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
    const struct fails f = {ERR_PEER, "rank 1 went away", 400000, false, 1};

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

/* The last work of a rank may end after a peer has left: that is no loss. Here it ends when the table has looked twice behind that,
 * on a machine so full that meanwhile the time is over that the work has for it. */
static int (*real_look)(struct collectives *c, const char *what, struct err *err);
static int looked_after;
static cudaStream_t breaks; /* at the second look; NULL: none does */

static int late_look(struct collectives *c, const char *what, struct err *err)
{
    const int rc = real_look(c, what, err);

    if (rc && ++looked_after == 1)
        usleep(400000); /* longer than NCCL_GRACE_MS */
    if (rc && looked_after == 2 && breaks)
        fake_stream_break(breaks, cudaErrorIllegalAddress);
    return rc;
}

static void rank_1_leaves(struct collectives *c)
{
    if (c->rank == 1)
        _exit(0);
    real_look = c->look;
    c->look = late_look;
}

static bool late_step(void *arg)
{
    (void)arg;
    return looked_after >= 2;
}

static int left_body(struct collectives *c, struct device_comm *d, cudaStream_t stream, const void *arg)
{
    struct err err = {0};

    (void)arg;
    rank_1_leaves(c);
    fake_stream_push(stream, late_step, NULL);
    RANK_OK(d->sync(d, stream, "last step", 400000, &err));
    RANK_CHECK(looked_after == 2 && !d->lost);
    _exit(0);
}

static void test_peer_that_has_finished(void **state)
{
    (void)state;
    part_run(2, (struct part){.body = left_body});
}

/* A GPU may fail because a peer's memory has gone. */
static int peer_breaks_body(struct collectives *c, struct device_comm *d, cudaStream_t stream,
                            const void *arg)
{
    static float x[N];
    struct err err = {0};

    (void)arg;
    rank_1_leaves(c);
    breaks = stream;
    RANK_OK(d->all_reduce(d, x, N, DEVICE_F32, stream, &err));
    RANK_CHECK(d->sync(d, stream, "step", 400000, &err) < 0 && err.kind == ERR_PEER);
    _exit(0);
}

static void test_lost_peer_is_the_cause(void **state)
{
    (void)state;
    part_run(2, (struct part){.body = peer_breaks_body});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stalled_rank_meets_the_deadline),
        cmocka_unit_test(test_abort_that_never_returns),
        cmocka_unit_test(test_error_of_the_network),
        cmocka_unit_test(test_own_error_takes_the_others_along),
        cmocka_unit_test(test_broken_gpu),
        cmocka_unit_test(test_killed_rank),
        cmocka_unit_test(test_peer_that_has_finished),
        cmocka_unit_test(test_lost_peer_is_the_cause),
    };

    part_fakes(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
