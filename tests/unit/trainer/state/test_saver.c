/* test_saver.c - when checkpoints are requested, what the thread that writes them reads, and what is reported about them; and that weights or
 * moments that are not finite are never in one. */
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
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
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
    return i == 0 ? f->model->values : i == 1 ? f->optim.m : i == 2 ? f->optim.v : (float *)f->model->buffers;
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

static atomic_int gate_shut, at_gate;
static int nice_there, signals_there;

/* In the thread that writes: wait until the test has opened the gate. */
static void gate(int count)
{
    sigset_t blocked;

    (void)count;
    nice_there = getpriority(PRIO_PROCESS, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    signals_there = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGCHLD);
    at_gate = 1;
    while (gate_shut)
        usleep(500);
}

static void written(struct saver *s, int64_t step)
{
    struct saver_outcome end;

    assert_true(saver_wait(s, -1) && saver_end(s, &end));
    assert_true(end.step == step && !end.err.kind);
}

static void fill(struct a_state *f, float seed)
{
    const size_t len = f->model->len;

    for (size_t i = 0; i < len; i++) {
        f->model->values[i] = seed + (float)i;
        f->optim.m[i] = -seed - (float)i;
        f->optim.v[i] = 2 * seed + (float)i;
    }
    ((float *)f->model->buffers)[0] = seed;
    f->optim.step = (int64_t)seed;
}

/* The checkpoint of a step, into the state, where it has to be as `fill` has left it. */
static void expect_filled(struct a_state *f, int64_t step)
{
    const struct snapshot into = a_state_snapshot(f);
    const size_t len = f->model->len;
    const float seed = (float)step;
    char path[PATH_MAX];
    struct manifest m;
    struct err err;

    snprintf(path, sizeof(path), "%s/step-%010d", f->dir, (int)step);
    if (ckpt_manifest(path, &m, &err) || snapshot_read(&into, path, &m, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < len; i++) {
        assert_true(f->model->values[i] == seed + (float)i);
        assert_true(f->optim.m[i] == -seed - (float)i);
        assert_true(f->optim.v[i] == 2 * seed + (float)i);
    }
    assert_true(((const float *)f->model->buffers)[0] == seed);
    assert_true(f->cursor.step == step && f->optim.step == step);
}

static void the_training_goes_on_while_the_copy_is_written(void **state)
{
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;

    s.save_steps = 1;
    open_for(&s, f);
    assert_true(s.copy.bytes >= 3 * f->model->len * sizeof(float));
    const void *memory = s.copy.memory;
    injected.fsync = gate;
    for (int step = 1; step <= 3; step++) {
        gate_shut = 1;
        at_gate = 0;
        fill(f, (float)step);
        begin(&s, f, step, false);
        while (!at_gate) {
            fill(f, 100 * (float)step); /* the next steps */
            usleep(100);
        }
        assert_false(saver_wait(&s, 1) || saver_end(&s, &end));
        gate_shut = 0;
        written(&s, step);
        assert_false(saver_end(&s, &end));
    }
    const int nice = getpriority(PRIO_PROCESS, 0) + SAVER_NICE; /* Linux knows none above 19 */
    assert_int_equal(nice_there, nice < 19 ? nice : 19);
    assert_true(signals_there);
    assert_ptr_equal(s.copy.memory, memory);
    saver_close(&s);
    expect_filled(f, 2);
    expect_filled(f, 3);
}

/* Whether no other process holds the folder of the checkpoints. */
static bool is_free(const struct a_state *f)
{
    const int fd = ckpt_lock(f->dir);

    if (fd > 0)
        close(fd);
    return fd >= 0;
}

/* From the first checkpoint on, so that no other run by hand continues in it meanwhile. */
static void the_folder_of_a_run_by_hand_is_held(void **state)
{
    struct a_state *f = *state;

    for (int holds = 0; holds < 2; holds++) {
        struct saver s = saver_of(f, 0);
        struct err err;
        s.locks = holds;
        open_for(&s, f);
        assert_true(is_free(f));
        for (int64_t step = 1; step < 3; step++) {
            assert_int_equal(save(&s, f, step, &err), 0);
            assert_int_equal(is_free(f), !holds);
        }
        saver_close(&s);
        assert_true(is_free(f));
    }
}

/* Moments that only the caller changes are written from where they are. */
static void moments_that_stay_are_not_copied(void **state)
{
    struct a_state *f = *state;
    struct snapshot live = a_state_snapshot(f);
    struct saver s = saver_of(f, 0);
    struct err err;

    const size_t all = snapshot_copy_bytes(&live);
    live.moments_gathered = true;
    assert_true(snapshot_copy_bytes(&live) + 2 * f->model->len * sizeof(float) <= all);
    s.save_steps = 1;
    assert_int_equal(saver_open(&s, &live, &err), 0);
    fill(f, 4);
    f->cursor.step = 4;
    saver_save(&s, &live, false);
    f->model->values[0] = 99;
    assert_ptr_equal(s.what.optim->m, f->optim.m);
    saver_close(&s); /* waits until it is written */
    expect_filled(f, 4);
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

/* A device delivers rank 0's request eight steps later: meanwhile rank 0 requests nothing again. */
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

/* A failure is new when the one before had another reason, or none; without a code the texts are compared. */
static void the_same_failure_is_told_again_as_such(void **state)
{
    static const struct {
        int error;
        int nan; /* in this part; -1: in none */
        bool same_reason;
    } story[] = {{ENOSPC, -1, false}, {ENOSPC, -1, true}, {EROFS, -1, false}, {EROFS, -1, true},
                 {0, -1, false},      {EROFS, -1, false}, {0, 0, false},      {0, 0, true},
                 {0, 1, false},       {0, 1, true}};
    struct a_state *f = *state;
    struct saver s = saver_of(f, 0);
    struct saver_outcome end;

    open_for(&s, f);
    for (size_t i = 0; i < ARRAY_LEN(story); i++) {
        float *at = part_of(f, story[i].nan > 0 ? (size_t)story[i].nan : 0);
        const float was = *at;
        if (story[i].error)
            injected =
                (struct injected){.what = INJECT_ERROR, .error = story[i].error, .at = injected_calls() + 1};
        if (story[i].nan >= 0)
            *at = NAN;
        begin(&s, f, (int64_t)i + 1, true);
        assert_true(saver_wait(&s, -1) && saver_end(&s, &end));
        *at = was;
        assert_int_equal(end.err.code, story[i].error);
        assert_int_equal(end.err.kind != ERR_NONE, story[i].error || story[i].nan >= 0);
        assert_int_equal(end.same_reason, story[i].same_reason);
        assert_int_equal(s.last_step, i < 4 ? -1 : 5);
    }
    saver_close(&s);
}

static bool no_threads;

int __wrap_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);
int __real_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

int __wrap_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg)
{
    return no_threads ? EAGAIN : __real_thread_start(ret, run, arg);
}

/* The container's limit would kill the process at its first checkpoint. */
static uint64_t room = MEMORY_ROOM_ANY;

uint64_t memory_room(void)
{
    return room;
}

/* No step is put off, since each waits for its checkpoint; what is written is the same. */
static void without_a_thread_or_memory_the_step_waits(void **state)
{
    struct a_state *f = *state;
    struct snapshot what = a_state_snapshot(f);
    struct optim huge = f->optim;
    const size_t bytes = snapshot_copy_bytes(&what);
    const struct {
        bool no_threads, huge;
        uint64_t room;
        const char *why; /* NULL: there is all */
    } cases[] = {
        {true, false, MEMORY_ROOM_ANY, "cannot start a thread to write checkpoints"},
        {false, true, MEMORY_ROOM_ANY, "no memory for a copy of the training's state, "},
        {false, false, bytes - 1, "the container's limit leaves"},
        {false, false, bytes, NULL},
    };

    huge.len = (size_t)1 << 50;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct saver s = saver_of(f, 0);
        struct saver_outcome end;
        struct err why;
        no_threads = cases[i].no_threads;
        room = cases[i].room;
        what.optim = cases[i].huge ? &huge : &f->optim;
        s.save_steps = 10;
        assert_int_equal(saver_open(&s, &what, &why), cases[i].why ? -1 : 0);
        no_threads = false;
        room = MEMORY_ROOM_ANY;
        assert_true(!cases[i].why || strstr(why.msg, cases[i].why));
        assert_int_equal(s.asynchronous, !cases[i].why);
        assert_int_equal(saver_flags(&s, 10), COLLECTIVES_SAVE);
        fill(f, 10);
        begin(&s, f, 10, false);
        assert_true(!cases[i].no_threads || saver_wait(&s, 0)); /* already written */
        written(&s, 10);
        assert_false(saver_end(&s, &end));
        saver_close(&s);
        expect_filled(f, 10);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, a_state_make, a_state_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_not_finite_is_never_the_newest),
        TEST(while_one_is_written_none_is_asked_for),
        TEST(what_is_asked_for_is_asked_for_once),
        TEST(by_time),
        TEST(the_training_goes_on_while_the_copy_is_written),
        TEST(the_folder_of_a_run_by_hand_is_held),
        TEST(moments_that_stay_are_not_copied),
        TEST(the_same_failure_is_told_again_as_such),
        TEST(without_a_thread_or_memory_the_step_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
