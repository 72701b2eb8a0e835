/* test_hang.c - a training under the launcher that hangs: its ranks' slots show who holds it up, and one that continues without output
 * is not ended.
 */
#include "test.h"

#include "common/arena.h"
#include "common/fsutil.h"
#include "launcher/run.h"
#include "trainer/small_data.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 2, POLLS_MAX = 300000, SILENT_MS = 2500 };

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

static void wait_ms(int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static bool ended(const struct run *r)
{
    siginfo_t info = {0};

    assert_int_equal(waitid(P_PID, (id_t)r->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid != 0;
}

/* Until rank 0 has trained some steps. */
static void wait_for_steps(const struct run *r)
{
    cleanup_arena struct arena a = {0};
    bool trains = false;

    for (int i = 0; i < POLLS_MAX && !trains && !ended(r); i++) {
        cleanup_buf struct buf out = BUF_INIT(1 << 24);
        struct err err;
        trains = !fs_read(arena_printf(&a, "%s/out.0", r->dir), &out, &err) &&
                 strstr(buf_str(&out), "\"event\":\"train\"");
        wait_ms(TICK_MS);
    }
    assert_true(trains && run_has_file(r, "pid.1"));
}

static void expect_blame(const struct run *r, const char *message)
{
    const char *root = strstr(buf_str(&r->err), "Root Cause (first observed failure):");

    if (!root || !strstr(root, "  rank      : 1 (") || !strstr(root, "  exitcode  : 138 ") ||
        !strstr(root, message))
        fail_msg("expected rank 1, 138, \"%s\" in: %s", message, buf_str(&r->err));
}

static void test_a_rank_that_is_stopped(void **state)
{
    struct run r;

    (void)state;
    run_start(&r, RUN_ARGS("--nproc-per-node=3", "--max-restarts=2"), TRAIN);
    wait_for_steps(&r);
    assert_int_equal(kill(run_read_number(&r, "pid.1"), SIGSTOP), 0);
    assert_int_equal(run_wait(&r), 138);
    expect_blame(&r, "no progress for 2 s: rank 1 is stopped (T)");
    if (!strstr(buf_str(&r.err), "; training; in all_reduce "))
        fail_msg("no slot is told: %s", buf_str(&r.err));
    run_release(&r);
}

/* No output for longer than the limit, but steps. */
static void test_steps_are_a_sign(void **state)
{
    struct run r;

    (void)state;
    run_start(&r, RUN_ARGS("--nproc-per-node=2"), TRAIN);
    wait_for_steps(&r);
    wait_ms(SILENT_MS);
    assert_false(ended(&r));
    kill(r.pid, SIGTERM);
    assert_int_equal(run_wait(&r), 143);
    run_release(&r);
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
    setenv("TORCHKEEPER_PROGRESS_TIMEOUT", "2", 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_data_remove(dir);
    free(trainer);
    free(run_torchrun);
    return failed;
}
