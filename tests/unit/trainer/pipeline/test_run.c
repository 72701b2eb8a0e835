/* test_run.c - whole runs of a model in stages: what they print, save and evaluate is what one process does, also when
 * they are killed or stopped and continue with another number of ranks. */
#include "test.h"

#include "../a_run.h"
#include "../run/resident/staged_nets.h"
#include "common/contract.h"
#include "ports.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char MODEL[] =
    STAGED_NET "defaults: {epochs: 4, batch_size: 24, micro_batches: 3, log_interval: 2}\n"
               "print: {epoch_all: \"Epoch {epoch} Loss: {loss}\"}\n";

/* Raise it there at that reading of the clock, once idle ranks wait for the end; rank -1: never. */
static struct {
    int rank, signal, call, idle;
} strike;

static int64_t striking_mono_ms(void *ctx)
{
    (void)ctx;
    if (launched.rank == strike.rank && strike.call-- == 0) {
        while (ports_connections(launched.port) < strike.idle) /* in one pod no other rank has one */
            usleep(10000);
        raise(strike.signal);
    }
    return clock_mono_ms();
}

/* Behind it, cfg.save_path is what one rank alone would have written. */
static struct buf undisturbed;

static int setup(void **state)
{
    make_of(state, MODEL);
    struct fixture *f = *state;
    f->cfg.save_seconds = 0;
    f->cfg.resume = "auto";
    f->cfg.save_path = path_in(f, "w.safetensors");
    strike.rank = -1;
    a_run_mono_ms = striking_mono_ms;
    return 0;
}

/* Checkpoints go to a folder of that name. */
static void begin(struct fixture *f, const char *name, size_t number)
{
    f->cfg.ckpt_dir = path_in(f, arena_printf(&f->arena, "%s%zu", name, number));
}

/* A run to its end, whose rank 0 prints that: what it writes is what one rank alone does. */
static void expect_undisturbed(struct fixture *f, int world, const char *says)
{
    cleanup_buf struct buf got = BUF_INIT(1 << 20);

    weights_of(f, world, &got);
    if (!strstr(output(f, 0), says))
        fail_msg("%s", output(f, 0));
    assert_same(&got, &undisturbed);
}

static void files_and_lines_are_one_process(void **state)
{
    struct fixture *f = *state;

    begin(f, "one", 0);
    go_all(f, 1, 0);
    const char *one = output(f, 0);
    begin(f, "three", 0);
    expect_undisturbed(f, 3, "Epoch 0 Loss: ");
    assert_string_equal(output(f, 0), one); /* losses of epochs, and of the validation */
    assert_non_null(strstr(one, "Epoch 3 Loss: "));
    assert_non_null(strstr(one, "epoch 4/4 with val loss: "));
    assert_string_equal(output(f, 1), "");
    assert_string_equal(output(f, 2), "");
}

/* Stopped by its own limit in the middle of an epoch at one number of ranks, finished at another. */
static void resumes_at_another_world(void **state)
{
    static const int worlds[][2] = {{1, 3}, {3, 1}, {3, 3}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(worlds); i++) {
        begin(f, "moved", i);
        f->cfg.save_steps = 7;
        f->cfg.max_steps = 9;
        go_all(f, worlds[i][0], 0);
        f->cfg.save_steps = 0;
        f->cfg.max_steps = 0;
        expect_undisturbed(f, worlds[i][1], "step 7");
    }
}

/* An early epoch: two or three readings of each. */
static void strike_at(int rank, int signal)
{
    strike.rank = rank;
    strike.signal = signal;
    strike.call = 8;
    strike.idle = 0;
}

/* The others leave with 140, an idle one as well. */
static void kill_one(struct fixture *f, int world, int rank)
{
    int codes[LAUNCHED_MAX];

    strike_at(rank, SIGKILL);
    strike.idle = world % 3; /* three stages */
    go_ranks(f, world, NULL, codes);
    for (int r = 0; r < world; r++)
        if (codes[r] != (r == rank ? 128 + SIGKILL : EXIT_CODE_PEER_LOST))
            fail_msg("rank %d of %d: exit %d, when rank %d died: %s", r, world, codes[r], rank, output(f, r));
    strike.rank = -1;
}

/* A rank dies: all ranks continue from the last checkpoint. */
static void a_killed_stage_is_made_good(void **state)
{
    struct fixture *f = *state;

    begin(f, "idle", 0);
    kill_one(f, 4, 2);
    f->cfg.save_steps = 2;
    for (int rank = 1; rank < 3; rank++) {
        begin(f, "killed", (size_t)rank);
        kill_one(f, 3, rank);
        expect_undisturbed(f, 3, "resumed from ");
    }
}

static void a_signal_to_one_stage_stops_and_saves_all(void **state)
{
    struct fixture *f = *state;

    for (int world = 3; world <= 4; world++) {
        begin(f, "stopped", (size_t)world);
        strike_at(2, SIGTERM);
        go_all(f, world, 143);
        strike.rank = -1;
        expect_undisturbed(f, 3, "resumed from ");
    }
}

/* Of 4 ranks 3 train, and of 6, of 2 one. */
static void ranks_that_do_not_fit_wait(void **state)
{
    static const char *const says[] = {
        "1 of 2 ranks train and 1 waits for the end: model.stages: 3 stages for 2 ranks, "
        "expected 1 or 3 ranks\n",
        "3 of 4 ranks train and 1 waits for the end: model.stages: 3 stages for 4 ranks, "
        "expected 1 or 3 ranks\n",
        "3 of 6 ranks train and 3 wait for the end: model.stages: 3 stages for 6 ranks, "
        "expected 1 or 3 ranks\n"};

    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        begin(*state, "idle", i);
        expect_undisturbed(*state, 2 + 2 * (int)i, says[i]);
    }
}

static int train_undisturbed(void **state)
{
    void *alone = NULL;

    undisturbed = (struct buf)BUF_INIT(1 << 20);
    setup(&alone);
    weights_of(alone, 1, &undisturbed);
    (void)state;
    return unmake(&alone);
}

static int forget_undisturbed(void **state)
{
    (void)state;
    buf_release(&undisturbed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_and_lines_are_one_process, setup, unmake),
        cmocka_unit_test_setup_teardown(resumes_at_another_world, setup, unmake),
        cmocka_unit_test_setup_teardown(a_killed_stage_is_made_good, setup, unmake),
        cmocka_unit_test_setup_teardown(a_signal_to_one_stage_stops_and_saves_all, setup, unmake),
        cmocka_unit_test_setup_teardown(ranks_that_do_not_fit_wait, setup, unmake),
    };

    launched.test = "stages";
    return cmocka_run_group_tests(tests, train_undisturbed, forget_undisturbed);
}
