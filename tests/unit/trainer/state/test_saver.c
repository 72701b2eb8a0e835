/* test_saver.c - when checkpoints are asked for, and what is told of them; and that weights or moments that are not finite are never in
 * one. */
#include "test.h"

#include "a_state.h"
#include "collectives/collectives.h"
#include "common/arena.h"
#include "common/thread.h"
#include "host/memory_room.h"
#include "injected.h"
#include "trainer/state/saver.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const char *const PARTS[] = {"weights", "exp_avg", "exp_avg_sq", "running statistics"};

static int64_t now_ms;

static int64_t mono_ms(void *ctx)
{
    (void)ctx;
    return now_ms;
}

static struct saver saver_of(const struct a_state *f, int rank)
{
    struct saver s = {
        .dir = f->dir, .keep = 100, .run_id = "run", .rank = rank, .clock = clock_system(), .last_step = -1};

    s.clock.mono_ms = mono_ms;
    now_ms = 0;
    return s;
}

static void open_for(struct saver *s, struct a_state *f)
{
    const struct snapshot what = a_state_snapshot(f);
    struct err err;

    assert_int_equal(saver_open(s, &what, &err), 0);
    assert_true(s->asynchronous);
}

static void begin(struct saver *s, struct a_state *f, int64_t step, bool still)
{
    f->cursor.step = step;
    const struct snapshot what = a_state_snapshot(f);
    saver_save(s, &what, still);
}

static int save(struct saver *s, struct a_state *f, int64_t step, struct err *err)
{
    struct saver_outcome end;

    begin(s, f, step, true);
    assert_true(saver_wait(s, -1) && saver_end(s, &end));
    assert_int_equal(end.step, step);
    *err = end.err;
    return end.err.kind ? -1 : 0;
}

static float *part_of(struct a_state *f, size_t i)
{
    return i == 0   ? model_values(f->model)
           : i == 1 ? f->optim.m
           : i == 2 ? f->optim.v
                    : model_buffers(f->model);
}

static void what_is_not_finite_is_never_the_newest(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct err err = {0};
    int64_t step = 1;

    open_for(&s, f);
    assert_int_equal(save(&s, f, step, &err), 0);
    for (size_t part = 0; part < ARRAY_LEN(PARTS); part++)
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            cleanup_arena struct arena a = {0};
            struct ckpt_list list;
            float *at = part_of(f, part) + (part < 3 ? 5 * i : i);
            const float was = *at;
            *at = bad[i];
            if (save(&s, f, ++step, &err) != -1 || !strstr(err.msg, "is not finite"))
                fail_msg("%s: %g was saved", PARTS[part], (double)bad[i]);
            *at = was;
            assert_int_equal(ckpt_list(f->dir, &a, &list, &err), 0);
            assert_int_equal(list.len, 1);
            assert_int_equal(list.entry[0].step, 1);
        }
    assert_int_equal(save(&s, f, ++step, &err), 0);
    saver_close(&s);
}

static atomic_int gate_shut;

static void gate(int count)
{
    (void)count;
    while (gate_shut)
        usleep(500);
}

static void written(struct saver *s, int64_t step)
{
    struct saver_outcome end;

    assert_true(saver_wait(s, -1) && saver_end(s, &end));
    assert_true(end.step == step && !end.err.kind);
}

/* Steps 20 and 30 are due while that of 10 is written: the first step after that is saved, once. */
static void while_one_is_written_none_is_asked_for(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);

    s.save_steps = 10;
    open_for(&s, f);
    gate_shut = 1;
    injected.fsync = gate;
    for (int64_t step = 1; step <= 40; step++) {
        const uint32_t flags = saver_flags(&s, step);
        assert_int_equal(flags, step == 10 || step == 34 || step == 40 ? COLLECTIVES_SAVE : 0);
        if (flags)
            begin(&s, f, step, false);
        if (step == 33) {
            gate_shut = 0;
            written(&s, 10);
        }
        if (step == 34)
            written(&s, 34);
    }
    written(&s, 40);
    saver_close(&s);
}

/* A device tells eight steps later what rank 0 has asked for: meanwhile it is not asked for again. */
static void what_is_asked_for_is_asked_for_once(void **state)
{
    enum { LAG = 8 };
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    int64_t asked_at = 0;
    int saved = 0;

    s.save_steps = 5;
    open_for(&s, f);
    for (int64_t step = 1; step <= 60; step++) {
        if (saver_flags(&s, step)) {
            assert_int_equal(asked_at, 0);
            asked_at = step;
        }
        if (asked_at && step == asked_at + LAG) {
            begin(&s, f, step, false);
            written(&s, step);
            asked_at = 0;
            saved++;
        }
    }
    assert_true(saved >= 4);
    saver_close(&s);
}

static void by_time(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0), other = saver_of(f, 1);

    s.save_ms = other.save_ms = 1000;
    other.save_steps = 1;
    open_for(&s, f);
    now_ms = 999;
    assert_int_equal(saver_flags(&s, 1), 0);
    now_ms = 1000;
    assert_int_equal(saver_flags(&s, 2), COLLECTIVES_SAVE);
    assert_int_equal(saver_flags(&s, 3), 0);
    assert_int_equal(saver_flags(&other, 3), 0); /* rank 0 alone decides */
    begin(&s, f, 3, false);
    written(&s, 3);
    now_ms = 1999;
    assert_int_equal(saver_flags(&s, 4), 0);
    now_ms = 2000;
    assert_int_equal(saver_flags(&s, 5), COLLECTIVES_SAVE);
    saver_close(&s);
}

/* A failure is new when the one before had another reason, or none. */
static void the_same_failure_is_told_again_as_such(void **state)
{
    static const struct {
        int error;
        bool same_reason;
    } story[] = {{ENOSPC, false}, {ENOSPC, true}, {EROFS, false}, {EROFS, true}, {0, false}, {EROFS, false}};
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;

    open_for(&s, f);
    for (size_t i = 0; i < ARRAY_LEN(story); i++) {
        if (story[i].error)
            injected =
                (struct injected){.what = INJECT_ERROR, .error = story[i].error, .at = injected_calls() + 1};
        begin(&s, f, (int64_t)i + 1, true);
        assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
        assert_int_equal(end.err.code, story[i].error);
        assert_int_equal(end.same_reason, story[i].same_reason);
        assert_int_equal(s.last_step, i < 4 ? -1 : 5);
    }
    saver_close(&s);
}

/* No memory for a copy: no step is put off, since each waits for its checkpoint; what is written is the same. */
static void without_memory_the_step_waits(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct optim huge = f->optim;
    struct snapshot what = a_state_snapshot(f);
    struct err why;

    huge.len = (size_t)1 << 50;
    what.optim = &huge;
    s.save_steps = 10;
    assert_int_equal(saver_open(&s, &what, &why), -1);
    assert_non_null(strstr(why.msg, "no memory for a copy of the training's state"));
    assert_false(s.asynchronous);
    assert_int_equal(saver_flags(&s, 10), COLLECTIVES_SAVE);
    begin(&s, f, 10, false);
    written(&s, 10);
    saver_close(&s);
}

static bool no_threads;

int thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    return no_threads ? EAGAIN : pthread_create(ret, NULL, run, arg);
}

static void without_a_thread_the_step_waits(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    const struct snapshot what = a_state_snapshot(f);
    struct saver_outcome end;
    struct err why;

    no_threads = true;
    s.save_steps = 10;
    assert_int_equal(saver_open(&s, &what, &why), -1);
    no_threads = false;
    assert_non_null(strstr(why.msg, "cannot start a thread to write checkpoints"));
    assert_false(s.asynchronous);
    assert_int_equal(saver_flags(&s, 10), COLLECTIVES_SAVE);
    begin(&s, f, 10, false); /* already written */
    assert_true(saver_wait(&s, 0) && saver_end(&s, &end));
    assert_true(end.step == 10 && !end.err.kind);
    assert_false(saver_end(&s, &end));
    saver_close(&s);
}

/* The container's limit would kill the process at its first checkpoint. */
static uint64_t room = MEMORY_ROOM_ANY;

uint64_t memory_room(void)
{
    return room;
}

static void where_the_container_has_no_room_the_step_waits(void **state)
{
    struct a_state *f = *state;
    const struct snapshot what = a_state_snapshot(f);
    const size_t bytes = snapshot_copy_bytes(&what);
    struct err why;

    for (int fits = 0; fits < 2; fits++) {
        struct saver s = saver_of(f, 0);
        s.save_steps = 10;
        room = bytes - !fits;
        assert_int_equal(saver_open(&s, &what, &why), fits ? 0 : -1);
        assert_int_equal(s.asynchronous, fits);
        assert_true(fits || strstr(why.msg, "the container's limit leaves"));
        saver_close(&s);
    }
    room = MEMORY_ROOM_ANY;
}

/* Of two tensors that are not finite. */
static void failures_without_a_code_are_told_apart_by_their_text(void **state)
{
    static const struct {
        size_t part;
        bool same_reason;
    } story[] = {{0, false}, {0, true}, {1, false}, {1, true}};
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;

    open_for(&s, f);
    for (size_t i = 0; i < ARRAY_LEN(story); i++) {
        float *at = part_of(f, story[i].part);
        const float was = *at;
        *at = NAN;
        begin(&s, f, (int64_t)i + 1, true);
        assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
        *at = was;
        assert_true(end.err.kind && !end.err.code);
        assert_int_equal(end.same_reason, story[i].same_reason);
    }
    saver_close(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, a_state_make, a_state_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_finite_is_never_the_newest),
        TEST(while_one_is_written_none_is_asked_for),
        TEST(what_is_asked_for_is_asked_for_once),
        TEST(by_time),
        TEST(the_same_failure_is_told_again_as_such),
        TEST(failures_without_a_code_are_told_apart_by_their_text),
        TEST(without_memory_the_step_waits),
        TEST(without_a_thread_the_step_waits),
        TEST(where_the_container_has_no_room_the_step_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
