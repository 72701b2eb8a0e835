/* test_run_ranks.c - whole runs of several ranks, each a process with an environment of its own: who speaks, what does not depend
 * on their number, and who is to blame. */
#include "test.h"

#include "../a_run.h"
#include "common/contract.h"
#include "host/rank_state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the original prints; only rank 0 speaks. */
static void the_lines_do_not_depend_on_ranks(void **state)
{
    struct fixture *f = *state;

    f->cfg.log_interval = 0;
    f->cfg.save_path = path_in(f, "m.pt");
    for (int world = 1; world <= 3; world += 2) {
        f->cfg.batch_size = 12 / world;
        f->cfg.log_interval_all_ranks = 2 * world;
        go_all(f, world, 0);
        expect_lines(output(f, 0),
                     (const char *const[]){
                         world == 1 ? "tiny: 1490 parameters, 1 rank (solo), batch 12 per rank"
                                    : "tiny: 1490 parameters, 3 ranks (host), batch 4 per rank",
                         "epoch 1/2, batch     2/4 with loss: %\n", "epoch 1/2, batch     4/4 with loss: %\n",
                         "epoch 1/2 with val loss: %, val accuracy: %\n",
                         "epoch 2/2, batch     2/4 with loss: %\n", "epoch 2/2, batch     4/4 with loss: %\n",
                         "epoch 2/2 with val loss: %, val accuracy: %\n", "test loss: %, test accuracy: %\n",
                         "training time: % s", NULL});
        for (int r = 1; r < world; r++)
            assert_string_equal(output(f, r), "");
    }
    assert_int_equal(access(f->cfg.save_path, R_OK), 0);
}

/* Shards differ with the world size, their sum does not. */
static void evaluation_does_not_depend_on_ranks(void **state)
{
    struct fixture *f = *state;

    f->cfg.eval_only = true;
    assert_int_equal(go(f), 0);
    const char *alone_says = strstr(f->text, "test loss: ");
    for (int world = 2; world <= 4; world++) {
        go_all(f, world, 0);
        assert_string_equal(strstr(output(f, 0), "test loss: "), alone_says);
    }
}

static void every_rank_speaks_its_own_lines(void **state)
{
    struct fixture *f = *state;

    own_lines(f);
    f->cfg.epochs = 1;
    f->cfg.save_path = path_in(f, "m.pt");
    go_all(f, 2, 0);
    expect_lines(output(f, 0),
                 (const char *const[]){"1 epochs of 12\n", "0: 0 of 2\n", "0 Loss: %\n",
                                       "epoch 1/1 with val loss: %, val accuracy: %\n",
                                       arena_printf(&f->arena, "0 at %s\n", f->cfg.save_path), NULL});
    expect_lines(output(f, 1), (const char *const[]){"1: 0 of 2\n", "1 Loss: %\n", NULL});
}

static void other_options(struct config *cfg, int rank)
{
    if (rank == 1)
        cfg->batch_size++;
}

static void no_data(struct config *cfg, int rank)
{
    if (rank == 0)
        cfg->data_dir = "/nowhere";
    cfg->no_download = true;
}

static void no_save(struct config *cfg, int rank)
{
    (void)rank;
    cfg->save_path = "/nowhere/m.pt";
}

static void no_weights(struct config *cfg, int rank)
{
    cfg->init_from = rank == 0 ? "/nowhere.pt" : "/not read";
}

static void the_rank_that_failed_is_the_one_that_says_so(void **state)
{
    static const char *const different = "ranks 0 and 1 were started with different models or options";
    const struct {
        void (*tweak)(struct config *cfg, int rank);
        const char *first, *others; /* the output of rank 0, and of the others */
        int code;                   /* theirs */
    } cases[] = {{other_options, different, different, EXIT_CODE_USAGE},
                 {no_data, "/nowhere", "rank 0 could not load the data set", EXIT_CODE_PEER_LOST},
                 {no_save, "--save_path: ", "", EXIT_CODE_PEER_LOST},
                 {no_weights, "--init_from: /nowhere.pt", "", EXIT_CODE_PEER_LOST}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int codes[3];
        go_ranks(f, 3, cases[i].tweak, codes);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(codes[r], r ? cases[i].code : EXIT_CODE_USAGE);
            assert_non_null(strstr(output(f, r), r ? cases[i].others : cases[i].first));
        }
    }
}

/* A rate of 0 leaves what was read; rank 0 alone reads. */
static void begins_with_the_weights_of_a_file(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf first = BUF_INIT(1 << 20);
    cleanup_buf struct buf again = BUF_INIT(1 << 20);

    weights_after(f, 2, &first);
    f->cfg.init_from = f->cfg.save_path;
    f->cfg.optimizer.lr = 0;
    f->cfg.seed = 5;
    f->cfg.save_path = path_in(f, "n.safetensors");
    go_all(f, 2, 0);
    f->cfg.init_from = f->cfg.save_path;
    weights_after(f, 1, &again);
    assert_same(&again, &first);
}

/* What a launcher reads of two ranks that train 2 epochs of 4 steps, validate and save. */
static void ranks_note_what_they_do(void **state)
{
    struct fixture *f = *state;
    char where[MEMORY_FILE_BYTES];
    struct rank_slot *slots;
    cleanup_close int fd = rank_state_make(2, &slots, where);

    assert_true(fd >= 0);
    f->cfg.batch_size = 6;
    f->cfg.save_steps = 3;
    f->cfg.save_path = path_in(f, "m.pt");
    launched.rank_state = where;
    const int64_t begun_ms = clock_mono_ms();
    go_all(f, 2, 0);
    const uint64_t took_us = (uint64_t)(clock_mono_ms() - begun_ms + 1) * 1000;
    launched.rank_state = NULL;
    for (int r = 0; r < 2; r++) {
        const struct rank_slot *s = &slots[r];
        assert_int_equal(s->phase, RANK_SAVING);
        assert_int_equal(s->call, RANK_CALL_NONE);
        assert_int_equal(s->step, 8);
        assert_int_equal(s->begun, slots[0].begun);
        assert_int_equal(s->ended, s->begun);
        assert_true(s->begun > s->step + 1); /* also to meet, to validate, to save */
        assert_true(s->step_us > 0 && s->wait_us > 0 && s->step_us + s->wait_us <= took_us);
    }
    /* Rank 0 has read the data, and written checkpoints. */
    assert_true(slots[0].signs > slots[1].signs);
    rank_state_unmap(slots, 2);
}

/* The last line of `text` that begins with `head`. */
static const char *last_line(struct fixture *f, const char *text, const char *head)
{
    const char *last = NULL;

    for (const char *at = text; (at = strstr(at, head)) != NULL; at++)
        if (at == text || at[-1] == '\n')
            last = at;
    return last ? arena_printf(&f->arena, "%.*s", (int)strcspn(last, "\n"), last) : "";
}

static char *resumed_get(const char *name)
{
    return strcmp(name, CONTRACT_ENV_JOB_UID) == 0 ? (char *)"losses" : launched_get(name);
}

/* The content of an epoch's line does not depend on where the epoch was interrupted: every rank's, and that of all. */
static void an_epochs_loss_counts_what_came_before_a_stop(void **state)
{
    struct fixture *f = *state;
    const char *want[3], *heads[3] = {"0 Loss: ", "1 Loss: ", "2 Loss: "};

    a_run_get = resumed_get;
    own_lines(f);
    f->cfg.lines.epoch_all = "all: {loss}";
    f->cfg.lines.start = f->cfg.lines.saved = NULL;
    f->cfg.save_path = NULL;
    f->cfg.save_every = 0;
    f->cfg.epochs = 2;
    f->cfg.batch_size = 4;
    for (int world = 1; world <= 3; world += 2) {
        const int steps = 12 / world; /* of an epoch */
        f->cfg.ckpt_dir = path_in(f, "none");
        f->cfg.max_steps = f->cfg.save_steps = 0;
        f->cfg.resume = "never";
        go_all(f, world, 0);
        const char *all = last_line(f, output(f, 0), "all: ");
        for (int r = 0; r < world; r++)
            want[r] = last_line(f, output(f, r), heads[r]);
        assert_true(strlen(all) > 5);
        for (int stop = 1; stop < 2 * steps; stop += world == 1 ? 5 : 3) {
            f->cfg.ckpt_dir = path_in(f, arena_printf(&f->arena, "losses-%d-%d", world, stop));
            f->cfg.max_steps = f->cfg.save_steps = stop;
            f->cfg.resume = "never";
            go_all(f, world, 0);
            f->cfg.max_steps = f->cfg.save_steps = 0;
            f->cfg.resume = "auto";
            go_all(f, world, 0);
            assert_non_null(strstr(output(f, 0), "resumed from "));
            for (int r = 0; r < world; r++)
                assert_string_equal(last_line(f, output(f, r), heads[r]), want[r]);
            assert_string_equal(last_line(f, output(f, 0), "all: "), all);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_lines_do_not_depend_on_ranks),
        TEST(every_rank_speaks_its_own_lines),
        TEST(evaluation_does_not_depend_on_ranks),
        TEST(the_rank_that_failed_is_the_one_that_says_so),
        TEST(begins_with_the_weights_of_a_file),
        TEST(ranks_note_what_they_do),
        TEST(an_epochs_loss_counts_what_came_before_a_stop),
    };

    launched.test = "run";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
