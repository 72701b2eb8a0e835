/* test_run.c - whole runs of a model in stages: what they print, save and evaluate is what one process does, also when
 * they are killed or stopped and go on with another number of ranks. */
#include "test.h"

#include "../../collectives/ranks.h"
#include "../run/resident/staged_nets.h"
#include "common/buf.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "trainer/launched.h"
#include "trainer/run/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char MODEL[] =
    STAGED_NET "defaults: {epochs: 4, batch_size: 24, micro_batches: 3, log_interval: 2}\n"
               "print: {epoch_all: \"Epoch {epoch} Loss: {loss}\"}\n";

enum { DIR_BYTES = 64 };

struct fixture {
    char dir[DIR_BYTES];
    struct arena arena;
    struct config cfg;
    struct err err;
    int strike_rank, strike_signal, strike_call; /* raise it there at that reading of the clock; -1: never */
};

static char *path_in(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static void clean(const char *dir)
{
    char command[DIR_BYTES + 16];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    snprintf(f->dir, sizeof(f->dir), "/tmp/pipeline_run_XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    if (config_decode("staged.yaml", MODEL, strlen(MODEL), &f->arena, &f->cfg, &f->err))
        fail_msg("%s", f->err.msg);
    f->cfg.timeout_s = 60;
    f->cfg.save_seconds = 0;
    f->strike_rank = -1;
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    struct fixture *f = *state;

    clean(f->dir);
    arena_release(&f->arena);
    free(f);
    return 0;
}

static struct fixture *the_fixture;

static int64_t striking_mono_ms(void *ctx)
{
    (void)ctx;
    if (launched.rank == the_fixture->strike_rank && the_fixture->strike_call-- == 0)
        raise(the_fixture->strike_signal);
    return clock_mono_ms();
}

struct stages_run {
    struct fixture *f;
    const char *tag;
};

static int rank_main(void *ctx, int rank)
{
    const struct stages_run *run_of = ctx;
    struct fixture *f = run_of->f;
    cleanup_stop struct stop stop = {.fd = -1};
    cleanup_fclose FILE *out = fopen(path_in(f, arena_printf(&f->arena, "%s.%d", run_of->tag, rank)), "w");
    struct run_env env = {.get = launched_get, .clock = clock_system(), .out = out, .stop = &stop};
    struct run_result result;

    the_fixture = f;
    env.clock.mono_ms = striking_mono_ms;
    env.started_ms = clock_mono_ms();
    if (!out)
        return RANK_FAILED;
    if (run(&f->cfg, &env, &result, &f->err))
        fprintf(out, "error: %s\n", f->err.msg);
    return result.exit_code;
}

/* Checkpoints and weights of `tag` go to places of that name; codes[r]: how each rank ended. */
static void go(struct fixture *f, const char *tag, int world, int *codes)
{
    f->cfg.ckpt_dir = path_in(f, arena_printf(&f->arena, "%s.ckpt", tag));
    f->cfg.save_path = path_in(f, arena_printf(&f->arena, "%s.safetensors", tag));
    launched_run(world, rank_main, &(struct stages_run){f, tag}, codes);
}

static void read_file(struct fixture *f, const char *name, struct buf *to)
{
    if (fs_read(path_in(f, name), to, &f->err))
        fail_msg("%s", f->err.msg);
}

static void expect_all(struct fixture *f, const char *tag, int world, const int *codes, int want)
{
    for (int r = 0; r < world; r++)
        if (codes[r] != want) {
            cleanup_buf struct buf said = BUF_INIT(1 << 20);
            read_file(f, arena_printf(&f->arena, "%s.%d", tag, r), &said);
            fail_msg("%s: rank %d: exit %d, expected %d: %s", tag, r, codes[r], want, buf_str(&said));
        }
}

static void run_well(struct fixture *f, const char *tag, int world)
{
    int codes[RANKS_MAX];

    go(f, tag, world, codes);
    expect_all(f, tag, world, codes, 0);
}

static void expect_same(struct fixture *f, const char *a, const char *b)
{
    cleanup_buf struct buf x = BUF_INIT(1 << 20);
    cleanup_buf struct buf y = BUF_INIT(1 << 20);

    read_file(f, a, &x);
    read_file(f, b, &y);
    assert_true(x.len > 0);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
}

static void files_and_lines_are_one_process(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf said = BUF_INIT(1 << 20);

    run_well(f, "one", 1);
    run_well(f, "three", 3);
    expect_same(f, "one.0", "three.0"); /* losses of epochs, and of the validation */
    expect_same(f, "one.safetensors", "three.safetensors");
    read_file(f, "three.0", &said);
    assert_non_null(strstr(buf_str(&said), "Epoch 0 Loss: "));
    assert_non_null(strstr(buf_str(&said), "Epoch 3 Loss: "));
    assert_non_null(strstr(buf_str(&said), "epoch 4/4 with val loss: "));
    for (int r = 1; r < 3; r++) {
        buf_clear(&said);
        read_file(f, arena_printf(&f->arena, "three.%d", r), &said);
        assert_string_equal(buf_str(&said), "");
    }
}

/* Stopped by its own limit in the middle of an epoch at one number of ranks, finished at another. */
static void resumes_at_another_world(void **state)
{
    static const int worlds[][2] = {{1, 3}, {3, 1}, {3, 3}};
    struct fixture *f = *state;

    run_well(f, "undisturbed", 1);
    for (size_t i = 0; i < ARRAY_LEN(worlds); i++) {
        char *tag = arena_printf(&f->arena, "moved%zu", i);
        f->cfg.save_steps = 7;
        f->cfg.max_steps = 9;
        run_well(f, tag, worlds[i][0]);
        f->cfg.save_steps = 0;
        f->cfg.max_steps = 0;
        run_well(f, tag, worlds[i][1]);
        cleanup_buf struct buf said = BUF_INIT(1 << 20);
        read_file(f, arena_printf(&f->arena, "%s.0", tag), &said);
        assert_non_null(strstr(buf_str(&said), "step 7"));
        expect_same(f, "undisturbed.safetensors", arena_printf(&f->arena, "%s.safetensors", tag));
    }
}

/* A rank dies: the others leave with 140, and all goes on from the last checkpoint. */
static void a_killed_stage_is_made_good(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS_MAX];

    run_well(f, "undisturbed", 1);
    for (int rank = 1; rank < 3; rank++) {
        char *tag = arena_printf(&f->arena, "killed%d", rank);
        f->cfg.save_steps = 2;
        f->strike_rank = rank;
        f->strike_signal = SIGKILL;
        f->strike_call = 8; /* an early epoch: two or three readings of each */
        go(f, tag, 3, codes);
        for (int r = 0; r < 3; r++)
            assert_int_equal(codes[r], r == rank ? 128 + SIGKILL : EXIT_CODE_PEER_LOST);
        f->strike_rank = -1;
        run_well(f, tag, 3);
        cleanup_buf struct buf said = BUF_INIT(1 << 20);
        read_file(f, arena_printf(&f->arena, "%s.0", tag), &said);
        assert_non_null(strstr(buf_str(&said), "resumed from "));
        expect_same(f, "undisturbed.safetensors", arena_printf(&f->arena, "%s.safetensors", tag));
    }
}

static void a_signal_to_one_stage_stops_and_saves_all(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS_MAX];

    run_well(f, "undisturbed", 1);
    f->strike_rank = 2;
    f->strike_signal = SIGTERM;
    f->strike_call = 8;
    go(f, "stopped", 3, codes);
    expect_all(f, "stopped", 3, codes, 143);
    f->strike_rank = -1;
    run_well(f, "stopped", 3);
    cleanup_buf struct buf said = BUF_INIT(1 << 20);
    read_file(f, "stopped.0", &said);
    assert_non_null(strstr(buf_str(&said), "resumed from "));
    expect_same(f, "undisturbed.safetensors", "stopped.safetensors");
}

/* Of 4 ranks 3 train, and of 6, of 2 one: what they write is what one rank alone does. */
static void ranks_that_do_not_fit_wait(void **state)
{
    static const char *const says[] = {[2] = "1 of 2 ranks train and 1 waits for the end: model.stages: 3 "
                                             "stages for 2 ranks, expected 1 or 3 ranks\n",
                                       [4] = "3 of 4 ranks train and 1 waits for the end: model.stages: 3 "
                                             "stages for 4 ranks, expected 1 or 3 ranks\n",
                                       [6] = "3 of 6 ranks train and 3 wait for the end: model.stages: 3 "
                                             "stages for 6 ranks, expected 1 or 3 ranks\n"};
    struct fixture *f = *state;

    run_well(f, "undisturbed", 1);
    for (int world = 2; world <= 6; world += 2) {
        char *tag = arena_printf(&f->arena, "idle%d", world);
        run_well(f, tag, world);
        cleanup_buf struct buf said = BUF_INIT(1 << 20);
        read_file(f, arena_printf(&f->arena, "%s.0", tag), &said);
        if (!strstr(buf_str(&said), says[world]))
            fail_msg("%s", buf_str(&said));
        expect_same(f, "undisturbed.safetensors", arena_printf(&f->arena, "%s.safetensors", tag));
    }
}

/* The idle rank ends as the others do: with their signal, or since one of them is lost. */
static void an_idle_rank_shares_the_fate_of_all(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS_MAX];

    f->strike_rank = 2;
    f->strike_call = 8;
    f->strike_signal = SIGTERM;
    go(f, "stopped", 4, codes);
    expect_all(f, "stopped", 4, codes, 143);
    f->strike_signal = SIGKILL;
    go(f, "killed", 4, codes);
    for (int r = 0; r < 4; r++)
        assert_int_equal(codes[r], r == 2 ? 128 + SIGKILL : EXIT_CODE_PEER_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_and_lines_are_one_process, make, unmake),
        cmocka_unit_test_setup_teardown(resumes_at_another_world, make, unmake),
        cmocka_unit_test_setup_teardown(a_killed_stage_is_made_good, make, unmake),
        cmocka_unit_test_setup_teardown(a_signal_to_one_stage_stops_and_saves_all, make, unmake),
        cmocka_unit_test_setup_teardown(ranks_that_do_not_fit_wait, make, unmake),
        cmocka_unit_test_setup_teardown(an_idle_rank_shares_the_fate_of_all, make, unmake),
    };

    launched = (struct launched){.port = 29519, .test = "stages"};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
