/* test_saver.c - when checkpoints are due, put off and told; and that weights or moments that are not finite are never in one. */
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
    struct saver s = {.dir = f->dir,
                      .keep = 100,
                      .run_id = "run",
                      .rank = rank,
                      .clock = clock_system(),
                      .last_step = -1,
                      .saved_step = -1,
                      .flags_step = -1};

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

/* Rank 0 and another take one decision from the flags that rank 0 raises. */
static void one_that_is_due_while_another_is_written_is_put_off(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0), other = saver_of(f, 1);
    struct saver_outcome end;
    uint32_t flags = 0;

    s.save_steps = other.save_steps = 10;
    other.asynchronous = true;
    open_for(&s, f);
    gate_shut = 1;
    injected.fsync = gate;
    for (int64_t step = 1; step <= 40; step++) {
        flags = saver_flags(&s);
        assert_int_equal(flags, step > 10 && step <= 33 ? COLLECTIVES_WRITING : 0);
        const bool told = saver_learn(&s, step, flags, 0);
        assert_int_equal(told, step == 20); /* once */
        assert_int_equal(saver_learn(&other, step, flags, 0), told);
        assert_int_equal(s.due, step == 10 || (step >= 20 && step <= 34) || step == 40);
        assert_int_equal(s.deferred, step >= 20 && step <= 33);
        assert_true(s.due == other.due && s.deferred == other.deferred);
        if (s.due && !s.deferred) {
            begin(&s, f, step, false);
            begin(&other, f, step, false);
        }
        if (step == 33) {
            gate_shut = 0;
            assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
            assert_true(end.step == 10 && !end.err.kind);
        }
        if (step == 34) {
            assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
            assert_true(end.step == 34 && !end.err.kind);
        }
    }
    assert_int_equal(s.saved_step, 40);
    assert_null(other.writer);
    saver_close(&s);
}

/* A device tells flags of eight steps ago: an old "idle" does not count, and one "save" does not make several. */
static void flags_that_come_late_are_of_before_the_save(void **state)
{
    enum { LAG = 8, STEPS = 43 };
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;
    uint32_t flags[STEPS + 1] = {0};
    int64_t saved[STEPS];
    int n = 0;

    s.save_steps = 12;
    s.save_ms = 1000;
    open_for(&s, f);
    gate_shut = 1;
    injected.fsync = gate;
    for (int64_t step = 1; step <= STEPS; step++) {
        now_ms = step == 3 ? 1000 : now_ms;
        flags[step] = saver_flags(&s);
        assert_int_equal(flags[step], step == 3                  ? COLLECTIVES_SAVE
                                      : step >= 12 && step <= 25 ? COLLECTIVES_WRITING
                                                                 : 0);
        saver_learn(&s, step, step > LAG ? flags[step - LAG] : 0, step > LAG ? LAG : (int)step);
        if (s.due && !s.deferred) {
            assert_true(saver_wait(&s, 0));
            begin(&s, f, step, false);
            saved[n++] = step;
        }
        if (step >= 25) { /* from here on the disk is fast */
            gate_shut = 0;
            assert_true(saver_wait(&s, -1));
            (void)saver_end(&s, &end);
        }
    }
    assert_int_equal(n, 3);
    assert_int_equal(saved[0], 11); /* raised at 3 */
    assert_int_equal(saved[1], 34); /* 12 and 24 were due; idle since 26, which is known 8 steps later */
    assert_int_equal(saved[2], 43); /* 36 was due, before anybody could know that 34 is written */
    saver_close(&s);
}

/* One GPU hears its own flags at once, and may yet say that what it tells is of eight steps ago. */
static void on_one_gpu_checkpoints_by_time_go_on(void **state)
{
    enum { LAG = 8, STEPS = 60, EACH = 4 };
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;
    int64_t saved = 0, last = 0;

    s.save_ms = EACH; /* a step takes 1 ms */
    open_for(&s, f);
    for (int64_t step = 1; step <= STEPS; step++) {
        now_ms = step;
        saver_learn(&s, step, saver_flags(&s), step > LAG ? LAG : (int)step);
        if (s.due && !s.deferred) {
            begin(&s, f, step, false);
            saved++;
            last = step;
        }
        assert_true(saver_wait(&s, -1));
        (void)saver_end(&s, &end);
    }
    assert_true(saved >= 4);
    assert_true(last > STEPS - 2 * LAG);
    saver_close(&s);
}

/* At an exact step a device tells the flags of all steps since the one told last: one request makes one checkpoint. */
static void of_merged_flags_what_the_last_save_answered_is_ignored(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;

    s.save_steps = 4;
    s.save_ms = 1000;
    open_for(&s, f);
    now_ms = 1000;
    assert_int_equal(saver_flags(&s), COLLECTIVES_SAVE); /* sent with step 3 */
    saver_learn(&s, 4, 0, 4);
    assert_true(s.due && !s.deferred);
    begin(&s, f, 4, false);
    assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
    saver_learn(&s, 6, COLLECTIVES_SAVE, 0);
    assert_false(s.due);
    now_ms = 2000;
    assert_int_equal(saver_flags(&s), COLLECTIVES_SAVE);
    saver_learn(&s, 7, COLLECTIVES_SAVE, 0);
    assert_true(s.due);
    saver_close(&s);
}

/* Behind an exact step nothing is heard for some steps: rank 0 writes as long as nobody has heard otherwise. */
static void unheard_is_not_idle(void **state)
{
    struct a_state *f = *state;
    struct saver other = saver_of(f, 1);

    other.asynchronous = true;
    other.save_steps = 10;
    other.saved_step = 10;
    saver_learn(&other, 19, COLLECTIVES_WRITING, 0);
    saver_learn(&other, 20, 0, 1);
    assert_true(other.due && other.deferred);
    saver_learn(&other, 28, 0, 8); /* of step 20 */
    assert_true(other.due && !other.deferred);
}

static void by_time_one_is_asked_for_once(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0), other = saver_of(f, 1);
    struct saver_outcome end;

    s.save_ms = other.save_ms = 1000;
    open_for(&s, f);
    now_ms = 999;
    assert_int_equal(saver_flags(&s), 0);
    now_ms = 1000;
    assert_int_equal(saver_flags(&s), COLLECTIVES_SAVE);
    assert_int_equal(saver_flags(&s), 0);
    assert_int_equal(saver_flags(&other), 0);
    assert_false(saver_learn(&s, 7, COLLECTIVES_SAVE, 0));
    assert_true(s.due && !s.deferred);
    begin(&s, f, 7, false);
    assert_false(s.due);
    assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
    now_ms = 1999;
    assert_int_equal(saver_flags(&s), 0);
    now_ms = 2000;
    assert_int_equal(saver_flags(&s), COLLECTIVES_SAVE);
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
    struct saver_outcome end;
    struct err why;

    huge.len = (size_t)1 << 50;
    what.optim = &huge;
    s.save_steps = 10;
    assert_int_equal(saver_open(&s, &what, &why), -1);
    assert_non_null(strstr(why.msg, "no memory for a copy of the training's state"));
    assert_false(s.asynchronous);
    assert_false(saver_learn(&s, 10, 0, 0));
    assert_true(s.due && !s.deferred);
    begin(&s, f, 10, false);
    assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
    assert_true(end.step == 10 && !end.err.kind);
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
    assert_false(saver_learn(&s, 10, 0, 0));
    assert_true(s.due && !s.deferred);
    begin(&s, f, 10, false);
    assert_int_equal(saver_flags(&s), 0); /* already written */
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
        TEST(one_that_is_due_while_another_is_written_is_put_off),
        TEST(flags_that_come_late_are_of_before_the_save),
        TEST(on_one_gpu_checkpoints_by_time_go_on),
        TEST(of_merged_flags_what_the_last_save_answered_is_ignored),
        TEST(unheard_is_not_idle),
        TEST(by_time_one_is_asked_for_once),
        TEST(the_same_failure_is_told_again_as_such),
        TEST(failures_without_a_code_are_told_apart_by_their_text),
        TEST(without_memory_the_step_waits),
        TEST(without_a_thread_the_step_waits),
        TEST(where_the_container_has_no_room_the_step_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
