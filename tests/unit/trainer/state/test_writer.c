/* test_writer.c - the thread that writes checkpoints: what it reads is the copy alone, how it runs, and what it leaves. */
#include "test.h"

#include "a_state.h"
#include "injected.h"
#include "trainer/state/snapshot_copy.h"
#include "trainer/state/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static atomic_int gate_shut, at_gate;
static int nice_there, signals_there;

/* In the writer's thread: wait until the test has opened the gate. */
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

static struct writer_job job_of(const struct a_state *f, const struct snapshot *what)
{
    return (struct writer_job){
        .what = *what, .dir = f->dir, .keep = 3, .manifest = {.step = what->cursor->step, .run_id = "run"}};
}

static void fill(struct a_state *f, float seed)
{
    const size_t len = model_len(f->model);
    float *buffers = model_buffers(f->model);

    for (size_t i = 0; i < len; i++)
        model_values(f->model)[i] = seed + (float)i;
    for (size_t i = 0; i < len && f->optim.m; i++)
        f->optim.m[i] = -seed - (float)i;
    for (size_t i = 0; i < len && f->optim.v; i++)
        f->optim.v[i] = 2 * seed + (float)i;
    buffers[0] = seed;
    f->cursor = (struct cursor){.epoch = 1, .step = (int64_t)seed, .items = 4, .step_samples = 2};
    f->optim.step = f->cursor.step;
}

static void expect_filled(const struct a_state *f, float seed)
{
    const size_t len = model_len(f->model);

    for (size_t i = 0; i < len; i++) {
        assert_true(model_values(f->model)[i] == seed + (float)i);
        assert_true(!f->optim.m || f->optim.m[i] == -seed - (float)i);
        assert_true(!f->optim.v || f->optim.v[i] == 2 * seed + (float)i);
    }
    assert_true(((const float *)model_buffers(f->model))[0] == seed);
    assert_int_equal(f->cursor.step, (int64_t)seed);
    assert_int_equal(f->optim.step, (int64_t)seed);
}

/* From the folder of the checkpoints into the state. */
static void read_back(struct a_state *f, const char *name)
{
    const struct snapshot into = a_state_snapshot(f);
    struct manifest m;
    struct err err;
    char path[PATH_MAX];

    if (ckpt_path(path, f->dir, name, &err) || ckpt_manifest(path, &m, &err) ||
        snapshot_read(&into, path, &m, &err))
        fail_msg("%s", err.msg);
}

static void the_training_goes_on_while_the_copy_is_written(void **state)
{
    struct a_state *f = *state;
    struct snapshot_copy copy;
    struct err err = {0};
    struct snapshot live = a_state_snapshot(f);

    assert_int_equal(snapshot_copy_make(&copy, &live, &err), 0);
    assert_true(copy.bytes >= 3 * model_len(f->model) * sizeof(float));
    struct writer *w = writer_open(&err);
    assert_non_null(w);
    injected.fsync = gate;
    for (float seed = 1; seed <= 3; seed++) {
        gate_shut = 1;
        at_gate = 0;
        fill(f, seed);
        live = a_state_snapshot(f);
        const struct writer_job job = job_of(f, snapshot_copy_take(&copy, &live));
        writer_begin(w, &job);
        while (!at_gate) {
            fill(f, 100 * seed); /* the next steps */
            usleep(100);
        }
        assert_true(writer_busy(w));
        assert_false(writer_wait(w, 1));
        assert_false(writer_end(w, &err));
        gate_shut = 0;
        assert_true(writer_wait(w, -1));
        assert_false(writer_busy(w));
        assert_true(writer_end(w, &err));
        assert_int_equal(err.kind, ERR_NONE);
        assert_false(writer_end(w, &err));
    }
    const int nice = getpriority(PRIO_PROCESS, 0) + WRITER_NICE; /* Linux knows none above 19 */
    assert_int_equal(nice_there, nice < 19 ? nice : 19);
    assert_true(signals_there);
    writer_close(w);
    const void *memory = copy.memory;
    snapshot_copy_take(&copy, &live);
    assert_ptr_equal(copy.memory, memory);
    snapshot_copy_release(&copy);
    read_back(f, "step-0000000002");
    expect_filled(f, 2);
    read_back(f, "step-0000000003");
    expect_filled(f, 3);
}

/* Moments that only the caller changes are written from where they are. */
static void moments_that_stay_are_not_copied(void **state)
{
    struct a_state *f = *state;
    struct snapshot_copy copy;
    struct err err = {0};
    struct snapshot live = a_state_snapshot(f);

    const size_t all = snapshot_copy_bytes(&live);
    live.moments_stay = true;
    assert_true(snapshot_copy_bytes(&live) + 2 * model_len(f->model) * sizeof(float) <= all);
    assert_int_equal(snapshot_copy_make(&copy, &live, &err), 0);
    fill(f, 4);
    const struct writer_job job = job_of(f, snapshot_copy_take(&copy, &live));
    assert_ptr_equal(job.what.optim->m, f->optim.m);
    model_values(f->model)[0] = 99;
    assert_int_equal(writer_write(&job, &err), 0);
    snapshot_copy_release(&copy);
    read_back(f, "step-0000000004");
    expect_filled(f, 4);
}

static void to_close_is_to_wait(void **state)
{
    struct a_state *f = *state;
    struct err err = {0};

    fill(f, 5);
    const struct snapshot live = a_state_snapshot(f);
    const struct writer_job job = job_of(f, &live);
    struct writer *w = writer_open(&err);
    assert_non_null(w);
    writer_begin(w, &job);
    writer_close(w);
    read_back(f, "step-0000000005");
    writer_close(NULL);
}

static void what_failed_is_told_and_the_next_is_written(void **state)
{
    struct a_state *f = *state;
    struct err err = {0};

    fill(f, 6);
    const struct snapshot live = a_state_snapshot(f);
    const struct writer_job job = job_of(f, &live);
    struct writer *w = writer_open(&err);
    assert_non_null(w);
    injected = (struct injected){.what = INJECT_ERROR, .error = ENOSPC, .at = injected_calls() + 3};
    writer_begin(w, &job);
    assert_true(writer_wait(w, -1) && writer_end(w, &err));
    assert_int_equal(err.kind, ERR_FATAL);
    assert_int_equal(err.code, ENOSPC);
    injected = (struct injected){0};
    writer_begin(w, &job);
    assert_true(writer_wait(w, -1) && writer_end(w, &err));
    assert_int_equal(err.kind, ERR_NONE);
    writer_close(w);
    read_back(f, "step-0000000006");
}

static void a_lack_of_memory_is_told(void **state)
{
    struct a_state *f = *state;
    struct snapshot_copy copy;
    struct err err = {0};
    struct optim huge = f->optim;
    struct snapshot s = a_state_snapshot(f);

    huge.len = (size_t)1 << 50;
    s.optim = &huge;
    assert_int_equal(snapshot_copy_make(&copy, &s, &err), -1);
    assert_true(err_is_shortage(&err));
    assert_int_equal(copy.bytes, 0);
    snapshot_copy_release(&copy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, a_state_make, a_state_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_training_goes_on_while_the_copy_is_written),
        TEST(moments_that_stay_are_not_copied),
        TEST(to_close_is_to_wait),
        TEST(what_failed_is_told_and_the_next_is_written),
        TEST(a_lack_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
