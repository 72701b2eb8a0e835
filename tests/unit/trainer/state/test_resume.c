/* test_resume.c - runs that are killed, stopped and moved to other numbers of ranks end with the weights of a run that
 * was left alone, bit by bit. */
#include "test.h"

#include "a_resume.h"
#include "common/contract.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KILLS = 50 };

/* Kill at random moments, continue, kill again, until enough kills were survived; every finished run is compared. */
static void kill_and_resume(struct fixture *f, int world, int kills)
{
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];
    int finished = 0;

    undisturbed(f, world, &want);
    print_message("seed %u (TK_SEED), %d ranks\n", resume_random, world);
    for (int i = 0; i < kills || !finished;) {
        int calls = 1 + rand_r(&resume_random) % 40;
        f->cfg.save_steps = 1 + rand_r(&resume_random) % 4;
        struct plan p = {.world = world, .signal = SIGKILL, .calls = i < kills ? calls : 0};
        int code = go_by(f, p, codes);
        if (code == 128 + SIGKILL) {
            i++;
            continue;
        }
        if (code)
            fail_msg("exit %d after %d kills", code, i);
        expect_weights(f, &want);
        finished++;
        forget(f);
    }
    f->cfg.save_steps = 0;
}

static void killed_runs_end_with_the_same_bits(void **state)
{
    static const struct {
        const char *optimizer;
        int world, kills;
    } cases[] = {
        {"{type: adam, lr: 0.01}", 1, KILLS},
        {"{type: adam, lr: 0.01}", 2, 8},
        {"{type: sgd, lr: 0.01}", 1, 5},
        {"{type: sgd, lr: 0.01, momentum: 0.9, dampening: 0.1}", 1, 5},
        {"{type: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices}", 1, 5},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        configure(*state, cases[i].optimizer);
        kill_and_resume(*state, cases[i].world, cases[i].kills);
    }
}

/* SIGTERM to one rank, whichever: all stop after the same step with 143, and the rest of the run is as if nothing was. */
static void a_stopped_run_saves_and_goes_on(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 2, &want);
    for (int calls = 3; calls < 30; calls += 4) {
        int signal = calls % 8 == 3 ? SIGTERM : SIGINT;
        int code = go_by(f, (struct plan){.world = 2, .signal = signal, .calls = calls}, codes);
        if (code) {
            assert_int_equal(code, 128 + signal);
            assert_int_equal(codes[1], 128 + signal);
            assert_true(says(f, "checkpoint of step "));
        }
        assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), 0);
        if (code)
            assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
        forget(f);
    }
    /* A rank that is not 0: it reads its clock at the beginning and the end of epochs. */
    assert_int_equal(go_by(f, (struct plan){.world = 2, .signal = SIGTERM, .rank = 1, .calls = 4}, codes),
                     143);
    assert_int_equal(codes[1], 143);
    assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), 0);
    expect_weights(f, &want);
}

/* The lines about validations and the test of all attempts, in their order. */
static void results(struct fixture *f, struct buf *add)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);

    read_file(path_in(f, "out.0"), &out);
    for (const char *line = buf_str(&out); *line; line += strcspn(line, "\n") + 1)
        if (strstr(line, "\"event\":\"val\"") == strchr(line, ',') + 1 ||
            strstr(line, "\"event\":\"test\"") == strchr(line, ',') + 1)
            assert_int_equal(
                buf_append(add, strchr(line, ','), strcspn(strchr(line, ','), "\n") + 1, &f->err), 0);
}

/* In a validation or the test the next batch is not begun; the next attempt does it again, and all is as if nothing was. */
static void a_stop_in_an_evaluation_costs_nothing(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    cleanup_buf struct buf told = BUF_INIT(1 << 20);
    int codes[RANKS];
    int validations = 0;
    int tests = 0;

    f->cfg.log_format = LOG_FORMAT_JSON;
    undisturbed(f, 2, &want);
    results(f, &told);
    assert_true(told.len > 0);
    for (int calls = 3, code = -1; code; calls++) {
        cleanup_buf struct buf seen = BUF_INIT(1 << 20);
        forget(f);
        code = go_by(f, (struct plan){.world = 2, .signal = SIGTERM, .calls = calls}, codes);
        bool validation = says(f, "\"during\":\"validation\"");
        bool test = says(f, "\"during\":\"test\"");
        if (!validation && !test)
            continue;
        validations += validation;
        tests += test;
        assert_int_equal(code, EXIT_CODE_TERMINATED);
        assert_int_equal(codes[1], EXIT_CODE_TERMINATED);
        assert_int_equal(access(f->cfg.save_path, F_OK), -1);
        results(f, &seen);
        assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), 0);
        assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
        results(f, &seen);
        assert_int_equal(seen.len, told.len);
        assert_memory_equal(seen.data, told.data, told.len);
    }
    assert_in_range(validations, 3, 12);
    assert_in_range(tests, 1, 4);
}

static void other_numbers_of_ranks_go_on(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    for (int from = 1; from <= RANKS; from++) {
        for (int to = 1; to <= RANKS; to++) {
            forget(f);
            f->cfg.resume = "auto";
            f->cfg.save_steps = 2;
            assert_int_equal(go_by(f, (struct plan){.world = from, .signal = SIGTERM, .calls = 8}, codes),
                             143);
            f->cfg.save_steps = 0;
            assert_int_equal(go_by(f, (struct plan){.world = to}, codes), 0);
            assert_true(says(f, "resumed from "));
            assert_true(says(f, "epoch 3/3 with val loss"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_runs_end_with_the_same_bits),
        TEST(a_stopped_run_saves_and_goes_on),
        TEST(a_stop_in_an_evaluation_costs_nothing),
        TEST(other_numbers_of_ranks_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
