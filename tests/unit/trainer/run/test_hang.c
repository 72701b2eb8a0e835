/* test_hang.c - a training under the launcher that hangs: its ranks' slots show who holds it up, and one that continues without output
 * is not ended.
 */
#include "test.h"

#include "common/arena.h"
#include "common/fsutil.h"
#include "launcher/run.h"
#include "patience.h"
#include "trainer/small_data.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 2, POLLS_MAX = 100000 };

/* It never ends by itself, and its log goes to a file, so that the launcher hears nothing. */
static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - flatten\n"
                            "    - {type: linear, name: a, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adam, lr: 0.001}\n"
                            "data: {format: idx, train_items: 64, val_items: 0}\n"
                            "defaults: {epochs: 100000, batch_size: 4, log_interval: 4}\n";
static const char TRAIN[] =
    "echo $$ >tmp.$RANK; mv tmp.$RANK pid.$RANK; "
    "exec \"$TRAINER\" $WHERE/tiny.yaml --data $WHERE --save_path w.safetensors --threads 1 "
    "--timeout 600 --log_format json >out.$RANK 2>&1";

static char *trainer;
static char dir[SMALL_DATA_DIR_BYTES];

static void wait_ms(int64_t ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

/* Until rank 0 has trained some steps. False: the launcher's limit was shorter than its start. */
static bool wait_for_steps(const struct run *r)
{
    cleanup_arena struct arena a = {0};
    bool trains = false;

    for (int i = 0; i < POLLS_MAX && !trains && run_runs(r); i++) {
        cleanup_buf struct buf out = BUF_INIT(1 << 24);
        struct err err;
        trains = !fs_read(arena_printf(&a, "%s/out.0", r->dir), &out, &err) &&
                 strstr(buf_str(&out), "\"event\":\"train\"");
        wait_ms(TICK_MS);
    }
    return trains && run_has_file(r, "pid.1");
}

static void set_limit(int64_t ms)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)(ms / 1000));
    setenv("TORCHKEEPER_PROGRESS_TIMEOUT", text, 1);
}

/* False: the launcher ended the round before the rank was stopped, since no step was taken for longer than the limit. */
static bool stopped_rank_is_blamed(int64_t limit_ms)
{
    struct run r;
    char want[80];

    set_limit(limit_ms);
    snprintf(want, sizeof(want), "no progress for %d s: rank 1 is stopped (T)", (int)limit_ms / 1000);
    run_start(&r, RUN_ARGS("--nproc-per-node=3", "--max-restarts=2"), TRAIN);
    bool stopped = wait_for_steps(&r) && !kill(run_read_number(&r, "pid.1"), SIGSTOP);
    stopped = stopped && !run_has_said(&r, "no progress for ");
    assert_int_equal(run_wait(&r), 138);
    if (stopped) {
        run_blames(&r, 1, 138, want);
        run_says(&r.err, "; training; in all_reduce ");
    }
    run_release(&r);
    return stopped;
}

static void test_a_rank_that_is_stopped(void **state)
{
    (void)state;
    patience_until(stopped_rank_is_blamed, 2000);
}

static bool goes_on_without_output(int64_t limit_ms)
{
    struct run r;

    set_limit(limit_ms);
    run_start(&r, RUN_ARGS("--nproc-per-node=2"), TRAIN);
    if (wait_for_steps(&r))
        wait_ms(limit_ms * 5 / 4);
    kill(r.pid, SIGTERM); /* it may have ended */
    const int code = run_wait(&r);
    assert_true(code == 143 || code == 138);
    run_release(&r);
    return code == 143;
}

/* No output for longer than the limit, but steps. A step may take longer than the limit on a busy machine. */
static void test_steps_are_a_sign(void **state)
{
    (void)state;
    patience_until(goes_on_without_output, 2000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_that_is_stopped),
        cmocka_unit_test(test_steps_are_a_sign),
    };
    char model[SMALL_DATA_DIR_BYTES + 16];
    struct err err;

    if (argc != 3 || !(trainer = realpath(argv[1], NULL)) || !(run_torchrun = realpath(argv[2], NULL)))
        return 2;
    small_data_make(dir);
    snprintf(model, sizeof(model), "%s/tiny.yaml", dir);
    if (fs_write_atomic(model, MODEL, strlen(MODEL), &err) < 0)
        return 2;
    setenv("TRAINER", trainer, 1);
    setenv("WHERE", dir, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_data_remove(dir);
    free(trainer);
    free(run_torchrun);
    return failed;
}
