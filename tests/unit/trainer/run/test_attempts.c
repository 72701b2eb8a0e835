/* test_attempts.c - two attempts of a job train in one folder, as when the node of the older one is cut off: the older one ends with
 * 140, and the newer one's weights are those of a job without the older one.
 */
#include "test.h"

#include "common/arena.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "launcher/run.h"
#include "process_state.h"
#include "trainer/small_data.h"
#include "trainer/state/files/ckpt_dir.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLLS_MAX = 100000, POLL_US = 2000, SAVE_STEPS = 20 };

/* 3.6 MB per checkpoint, whose writing takes several steps. One rank takes 16 steps per epoch, two take 8: so an older attempt of one
 * rank has other weights than a newer one of two. */
static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - flatten\n"
                            "    - {type: linear, name: a, out: 512}\n"
                            "    - relu\n"
                            "    - {type: linear, name: b, out: 512}\n"
                            "    - relu\n"
                            "    - {type: linear, name: c, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adam, lr: 0.001}\n"
                            "data: {format: idx, train_items: 64, val_items: 0}\n"
                            "defaults: {epochs: 60, batch_size: 4, log_interval: 4}\n";

static const char SCRIPT[] =
    "echo $$ >tmp.$RANK; mv tmp.$RANK pid.$RANK; "
    "export LD_PRELOAD=$PRELOADED; exec \"$TRAINER\" $WHERE/tiny.yaml --data $WHERE --ckpt_dir $WHERE/ck "
    "--save_path "
    "$WHERE/w.safetensors "
    "--save_seconds 0 --save_steps 20 --keep 60 --log_dir $WHERE/tb --threads 1 --timeout 600 $MORE";

static char *trainer, *stopped_write;
static char where[SMALL_DATA_DIR_BYTES];

static int make(void **state)
{
    char model[SMALL_DATA_DIR_BYTES + 16];
    struct err err;

    (void)state;
    small_data_make(where);
    snprintf(model, sizeof(model), "%s/tiny.yaml", where);
    setenv("TRAINER", trainer, 1);
    setenv("WHERE", where, 1);
    setenv("PRELOADED", "", 1);
    setenv("PTJ_JOB_UID", "job", 1);
    return fs_write_atomic(model, MODEL, strlen(MODEL), &err);
}

static int clear(void **state)
{
    (void)state;
    small_data_remove(where);
    return 0;
}

/* An attempt under the launcher, as the operator starts it. */
static void start(struct run *r, int attempt, int ranks, int restarts, const char *more)
{
    char id[32], nproc[32], again[32];

    snprintf(id, sizeof(id), "--rdzv-id=job-%d", attempt);
    snprintf(nproc, sizeof(nproc), "--nproc-per-node=%d", ranks);
    snprintf(again, sizeof(again), "--max-restarts=%d", restarts);
    setenv("MORE", more, 1);
    run_start(r, RUN_ARGS(id, nproc, again), SCRIPT);
}

static void expect_end(struct run *r, int code)
{
    const int rc = run_wait(r);

    if (rc != code)
        fail_msg("it ended with %d, expected %d\n%s%s", rc, code, buf_str(&r->out), buf_str(&r->err));
}

static void attempt(int number, int ranks, const char *more)
{
    struct run r;

    start(&r, number, ranks, 0, more);
    expect_end(&r, 0);
    run_release(&r);
}

/* The run's folder, "" before there is one. */
static const char *folder(struct arena *a)
{
    const char *dir = arena_printf(a, "%s/ck", where);
    struct ckpt_list list;
    struct err err;

    if (ckpt_list(dir, a, &list, &err) || !list.runs)
        return "";
    return arena_printf(a, "%s/%s", dir, list.entry[list.len].name);
}

static int64_t newest(void)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err;

    return ckpt_list(folder(&a), &a, &list, &err) || !list.len ? -1 : list.entry[0].step;
}

static void wait_for_step(int64_t step)
{
    for (int i = 0; i < POLLS_MAX && newest() < step; i++)
        usleep(POLL_US);
    if (newest() < step)
        fail_msg("no checkpoint of step %d, the newest one is of %d", (int)step, (int)newest());
}

/* The process of the older attempt, when it has stopped in a write. */
static pid_t stopped_in_a_write(const struct run *r)
{
    assert_true(run_wait_file(r, "pid.0"));
    const pid_t pid = run_read_number(r, "pid.0");
    char state;
    for (int i = 0; (state = process_state(pid, NULL)) && state != 'T' && i < POLLS_MAX; i++)
        usleep(POLL_US);
    if (state != 'T')
        fail_msg("%d did not stop, its newest checkpoint is of step %d", (int)pid, (int)newest());
    return pid;
}

static void read_weights(struct buf *out)
{
    cleanup_arena struct arena a = {0};
    struct err err;

    if (fs_read(arena_printf(&a, "%s/w.safetensors", where), out, &err))
        fail_msg("%s", err.msg);
}

/* The step from which the newer attempt resumed. */
static int64_t began_at(const struct run *r)
{
    const char *at = strstr(buf_str(&r->out), "resumed from ");

    at = at ? strstr(at, ", step ") : NULL;
    if (!at)
        fail_msg("%s", buf_str(&r->out));
    return strtoll(at + strlen(", step "), NULL, 10);
}

/* The same without a disturbance, in a folder of its own. */
static void undisturbed(int64_t from, struct buf *out)
{
    char more[64];

    clear(NULL);
    make(NULL);
    snprintf(more, sizeof(more), "--max_steps %lld --save_steps %lld", (long long)from, (long long)from);
    attempt(5, 1, more);
    attempt(6, 2, "--save_steps 100000");
    read_weights(out);
}

/* The older one wakes up inside of its write, when the newer one has trained on. */
static void a_stopped_attempt_ends_and_adds_nothing(void **state)
{
    cleanup_buf struct buf got = BUF_INIT(1 << 24), want = BUF_INIT(1 << 24);
    struct run older, newer;
    char more[64];

    (void)state;
    setenv("PRELOADED", stopped_write, 1);
    start(&older, 5, 1, 0, "");
    setenv("PRELOADED", "", 1);
    const pid_t pid = stopped_in_a_write(&older);
    snprintf(more, sizeof(more), "--max_steps %lld", (long long)newest() + 3 * SAVE_STEPS);
    start(&newer, 6, 2, 0, more);
    expect_end(&newer, 0);
    const int64_t from = began_at(&newer);
    run_release(&newer);
    const int64_t last = newest();
    assert_true(last > from);
    assert_int_equal(kill(pid, SIGCONT), 0);
    expect_end(&older, EXIT_CODE_PEER_LOST);
    run_says(&older.err, "attempt 6 of the job writes here, so this one, attempt 5, ends");
    run_release(&older);
    assert_int_equal(newest(), last);
    attempt(6, 2, "--save_steps 100000");
    read_weights(&got);
    undisturbed(from, &want);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

static int count_files(const char *dir)
{
    cleanup_closedir DIR *names = opendir(dir);
    int n = 0;

    for (struct dirent *e; names && (e = readdir(names));)
        n += e->d_name[0] != '.';
    return n;
}

/* The older one trains beside the newer one: it ends at its next write, and its restarts end before they read or write. */
static void an_attempt_that_trains_on_ends_at_its_next_write(void **state)
{
    cleanup_arena struct arena a = {0};
    const char *tb = arena_printf(&a, "%s/tb", where);
    struct run older, newer;

    (void)state;
    start(&older, 5, 1, 2, "--epochs 1000000");
    wait_for_step(SAVE_STEPS);
    start(&newer, 6, 1, 0, "--epochs 1000000");
    expect_end(&older, EXIT_CODE_PEER_LOST);
    run_says(&older.err, "attempt 6 of the job writes here, so this one, attempt 5, ends");
    run_release(&older);
    assert_true(run_wait_file(&newer, "pid.0"));
    wait_for_step(newest() + SAVE_STEPS);
    assert_int_equal(count_files(tb), 2); /* one of each attempt, none of the older one's restarts */
    kill(run_read_number(&newer, "pid.0"), SIGTERM);
    expect_end(&newer, EXIT_CODE_TERMINATED);
    run_release(&newer);
}

/* Attempt 0 begins again behind attempt 5: the first launch ends with 140, also when its launcher restarts it, the next goes on. */
static void after_a_cleared_status_the_second_attempt_goes_on(void **state)
{
    struct run zero, one;

    (void)state;
    attempt(5, 1, "--max_steps 40");
    start(&zero, 0, 1, 1, "");
    expect_end(&zero, EXIT_CODE_PEER_LOST);
    run_says(&zero.err, "attempt 5 of the job writes here, so this one, attempt 0, ends");
    run_release(&zero);
    start(&one, 1, 1, 0, "--max_steps 60");
    expect_end(&one, 0);
    assert_int_equal(began_at(&one), 40);
    run_release(&one);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, clear)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stopped_attempt_ends_and_adds_nothing),
        TEST(an_attempt_that_trains_on_ends_at_its_next_write),
        TEST(after_a_cleared_status_the_second_attempt_goes_on),
    };

    if (argc != 4 || !(trainer = realpath(argv[1], NULL)) || !(run_torchrun = realpath(argv[2], NULL)) ||
        !(stopped_write = realpath(argv[3], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(trainer);
    free(run_torchrun);
    free(stopped_write);
    return failed;
}
