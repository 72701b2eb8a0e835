/* test_kills.c - ranks of a training under the launcher are killed at random moments: each attempt continues from the newest
 * checkpoint that was complete when the rank was killed, or a newer one, and the run ends with the weights of a run without kills.
 *
 * The environment variable TK_KILLS sets the number of kills (default KILLS).
 */
#include "test.h"

#include "common/arena.h"
#include "common/clock.h"
#include "common/fsutil.h"
#include "launcher/run.h"
#include "patience.h"
#include "sanitized.h"
#include "seed.h"
#include "trainer/small_data.h"
#include "trainer/state/files/ckpt_dir.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KILLS = SANITIZED ? 5 : 10,
    KILLS_OF_A_RUN = 5,
    RANKS = 2,
    DELAY_MS = 500,
    TICK_MS = 2,
    POLLS_MAX = 300000
};

/* About 1000 steps, of which every 20th is saved: 3.6 MB each, whose writing takes several steps. */
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
                            "defaults: {epochs: 125, batch_size: 4, log_interval: 4}\n";
static const char SCRIPT[] =
    "echo $$ >tmp.$RANK; mv tmp.$RANK pid.$TORCHELASTIC_RESTART_COUNT.$RANK; "
    "exec \"$TRAINER\" $WHERE/tiny.yaml --data $WHERE --ckpt_dir ck --save_path w.safetensors --save_seconds "
    "0 "
    "--save_steps 20 --threads 1 --timeout 600 --log_format json >out.$TORCHELASTIC_RESTART_COUNT.$RANK";

static char *trainer;

static void wait_ms(int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

static int64_t newest(const struct run *r)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err err;
    const char *dir = arena_printf(&a, "%s/ck", r->dir);

    if (ckpt_list(dir, &a, &list, &err) || !list.runs)
        return 0;
    dir = arena_printf(&a, "%s/%s", dir, list.entry[list.len].name);
    for (size_t i = 0; !ckpt_list(dir, &a, &list, &err) && i < list.len; i++) {
        struct manifest m;
        if (!ckpt_manifest(arena_printf(&a, "%s/%s", dir, list.entry[i].name), &m, &err))
            return list.entry[i].step;
    }
    return 0;
}

/* An attempt that has taken steps has printed where it began. */
static bool has_trained(const char *out)
{
    return strstr(out, "\"event\":\"train\"") != NULL;
}

static bool trains(const struct run *r, int attempt)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct err err;

    return !fs_read(arena_printf(&a, "%s/out.%d.0", r->dir, attempt), &out, &err) &&
           has_trained(buf_str(&out));
}

/* False: the run was over. *whole: the step of the newest whole checkpoint before that. Of two delays one begins when the attempt
 * trains, however long that takes, the other with its process. */
static bool kill_one(const struct run *r, int attempt, unsigned *random, int64_t *whole)
{
    char name[32];
    const int delay = rand_r(random) % DELAY_MS, rank = rand_r(random) % RANKS;

    snprintf(name, sizeof(name), "pid.%d.%d", attempt, rank);
    for (int i = 0; i < POLLS_MAX && !run_has_file(r, name) && run_runs(r); i++)
        wait_ms(TICK_MS);
    if (!run_has_file(r, name))
        return false;
    for (int i = 0; attempt % 2 && i < POLLS_MAX && !trains(r, attempt) && run_runs(r); i++)
        wait_ms(TICK_MS);
    wait_ms(delay);
    *whole = newest(r);
    return kill(run_read_number(r, name), SIGKILL) == 0;
}

/* The step from which an attempt continued; -1: not known, it was killed before it printed that. */
static int64_t began_at(const struct run *r, int attempt)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct err err;

    if (fs_read(arena_printf(&a, "%s/out.%d.0", r->dir, attempt), &out, &err))
        return -1;
    if (strstr(buf_str(&out), "damaged"))
        fail_msg("%s", buf_str(&out));
    const char *at = strstr(buf_str(&out), "resumed from ");
    if (at && (at = strstr(at, ", step ")))
        return strtoll(at + strlen(", step "), NULL, 10);
    return has_trained(buf_str(&out)) ? 0 : -1;
}

static void expect_weights(const struct run *r, const struct buf *want)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf got = BUF_INIT(1 << 24);
    struct err err;

    if (fs_read(arena_printf(&a, "%s/w.safetensors", r->dir), &got, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(got.len, want->len);
    assert_memory_equal(got.data, want->data, want->len);
}

struct tally {
    int kills, told, redone, lost;
};

/* A run of which up to `kills` ranks are killed. */
static void disturbed(int kills, unsigned *random, const struct buf *want, struct tally *t)
{
    int64_t whole[KILLS_OF_A_RUN];
    struct run r;
    int n = 0;

    run_start(&r, RUN_ARGS("--nproc-per-node=2", "--max-restarts=100"), SCRIPT);
    while (n < kills && kill_one(&r, n, random, &whole[n]))
        n++;
    const int code = run_wait(&r);
    if (code) {
        print_message("exit %d\n%s%s", code, buf_str(&r.out), buf_str(&r.err));
        t->lost++;
    } else {
        expect_weights(&r, want);
    }
    for (int i = 0; i < n; i++) {
        const int64_t at = began_at(&r, i + 1);
        t->told += at >= 0;
        if (at >= 0 && at < whole[i]) {
            print_message("step %lld was saved, and the next attempt began at %lld\n", (long long)whole[i],
                          (long long)at);
            t->redone++;
        }
    }
    t->kills += n;
    run_release(&r);
}

static void killed_ranks_lose_no_checkpoint(void **state)
{
    char dir[SMALL_DATA_DIR_BYTES], model[SMALL_DATA_DIR_BYTES + 16];
    cleanup_buf struct buf want = BUF_INIT(1 << 24);
    cleanup_arena struct arena a = {0};
    unsigned random = (unsigned)seed_of_run();
    const char *asked = getenv("TK_KILLS");
    const int kills = asked ? atoi(asked) : KILLS;
    struct tally t = {0};
    struct err err;
    struct run r;

    (void)state;
    small_data_make(dir);
    snprintf(model, sizeof(model), "%s/tiny.yaml", dir);
    assert_int_equal(fs_write_atomic(model, MODEL, strlen(MODEL), &err), 0);
    setenv("TRAINER", trainer, 1);
    setenv("WHERE", dir, 1);
    run_start(&r, RUN_ARGS("--nproc-per-node=2"), SCRIPT);
    assert_int_equal(run_wait(&r), 0);
    assert_int_equal(fs_read(arena_printf(&a, "%s/w.safetensors", r.dir), &want, &err), 0);
    run_release(&r);
    /* A run may be over before the next kill, where this process has no core meanwhile. */
    const int64_t end_ms = clock_mono_ms() + PATIENCE_MOST_MS;
    for (int runs = 0; t.kills < kills && (runs < 2 * kills || clock_mono_ms() < end_ms); runs++)
        disturbed(kills - t.kills < KILLS_OF_A_RUN ? kills - t.kills : KILLS_OF_A_RUN, &random, &want, &t);
    print_message(
        "%d kills, %d attempts told where they began: %d runs lost, %d attempts behind a whole checkpoint\n",
        t.kills, t.told, t.lost, t.redone);
    /* Every other attempt was killed behind its first steps, and the last one of a run was not. */
    assert_true(t.kills == kills && t.told >= kills / 2);
    assert_int_equal(t.lost, 0);
    assert_int_equal(t.redone, 0);
    small_data_remove(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_ranks_lose_no_checkpoint)};

    if (argc != 3 || !(trainer = realpath(argv[1], NULL)) || !(run_torchrun = realpath(argv[2], NULL)))
        return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(trainer);
    free(run_torchrun);
    return failed;
}
