/* test_suspect.c - which rank holds up the others. */
#include "common/cleanup.h"
#include "launcher/suspect.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { N = 4 };

/* Four ranks, 4 to 7, that sleep. */
static void sleepers(struct suspect_rank r[static N])
{
    for (int i = 0; i < N; i++)
        r[i] = (struct suspect_rank){
            .rank = 4 + i, .pid = 70 + i, .state = 'S', .wchan = "futex_wait_queue", .cpu_percent = 0};
}

/* All in the collective call `number`. */
static void in_call(struct suspect_rank r[static N], uint32_t call, uint64_t number)
{
    sleepers(r);
    for (int i = 0; i < N; i++) {
        r[i].slot.phase = RANK_TRAINING;
        r[i].slot.call = r[i].slot.last = call;
        r[i].slot.begun = number;
        r[i].slot.ended = number - 1;
    }
}

static void in_stack(struct suspect_rank *r, bool waits, const char *at, int64_t place)
{
    r->stack = (struct stack){.known = true, .waits = waits, .place = place};
    snprintf(r->stack.at, sizeof(r->stack.at), "%s", at);
}

static void expect_run(const struct suspect_rank *r, int n, uint64_t reached, uint32_t call,
                       enum meeting_strength strength, int index, const char *text)
{
    const struct suspect s = suspect_find(r, n, reached, call);

    assert_string_equal(s.text, text);
    assert_int_equal(s.index, index);
    assert_int_equal(s.strength, strength);
}

static void expect(const struct suspect_rank *r, enum meeting_strength strength, int index, const char *text)
{
    expect_run(r, N, 0, 0, strength, index, text);
}

static void test_states(void **state)
{
    struct suspect_rank r[N];

    (void)state;
    in_call(r, RANK_CALL_ALL_REDUCE, 12);
    r[3].slot.begun = 11; /* weaker evidence against another */
    r[2].state = 'D';
    snprintf(r[2].wchan, sizeof(r[2].wchan), "nfs_wait");
    expect(r, STRENGTH_DISK, 2, "rank 6 is in uninterruptible sleep (D, nfs_wait)");
    r[2].slot.begun = 10;
    expect(r, STRENGTH_DISK, 2, "rank 6 did not reach all_reduce 12 (D, nfs_wait)");
    r[1].state = 't';
    expect(r, STRENGTH_STOPPED, 1, "rank 5 is stopped by a debugger (t)");
    r[0].state = 'T';
    expect(r, STRENGTH_STOPPED, 0, "rank 4 is stopped (T)");
    sleepers(r);
    r[3].state = 'D';
    expect(r, STRENGTH_DISK, 3, "rank 7 is in uninterruptible sleep (D, futex_wait_queue)");
}

static void test_collective_calls(void **state)
{
    struct suspect_rank r[N];

    (void)state;
    in_call(r, RANK_CALL_ALL_REDUCE, 1234);
    expect(r, STRENGTH_UNKNOWN, 0, "all ranks wait in all_reduce 1234: a connection between them is lost?");
    r[3].slot.begun = r[3].slot.ended = 1233;
    expect(r, STRENGTH_BEHIND, 3, "rank 7 did not reach all_reduce 1234 (S, futex_wait_queue)");
    r[2].slot.begun = r[2].slot.ended = 1232;
    assert_int_equal(suspect_find(r, N, 0, 0).number, 1232);
    expect(r, STRENGTH_BEHIND, 2, "rank 6 did not reach all_reduce 1234 (S, futex_wait_queue)");
    r[2].ended = true;
    r[2].state = 0;
    expect(r, STRENGTH_BEHIND, 2, "rank 6 ended before all_reduce 1234");
    in_call(r, RANK_CALL_BROADCAST, 7);
    r[1].slot.ended = 7;
    r[1].slot.call = RANK_CALL_NONE;
    r[1].state = 'R';
    r[1].wchan[0] = '\0';
    expect(r, STRENGTH_ODD, 1, "rank 5 goes no further after broadcast 7 (R)");
    sleepers(r);
    for (int i = 0; i < N; i++)
        r[i].slot.begun = r[i].slot.ended = 7;
    expect(r, STRENGTH_UNKNOWN, 0, "cannot tell which rank: rank 4 sleeps (S, futex_wait_queue)");
    /* One that waits for another rank, or for its GPU, is not the one that others wait for. */
    r[0].slot.call = r[2].slot.call = r[3].slot.call = RANK_CALL_RECV;
    for (int i = 0; i < N; i++)
        r[i].slot.last = RANK_CALL_ALL_REDUCE;
    expect(r, STRENGTH_ODD, 1, "rank 5 goes no further after all_reduce 7 (S, futex_wait_queue)");
    expect_run(&r[1], 1, 0, 0, STRENGTH_ODD, 0,
               "rank 5 goes no further after all_reduce 7 (S, futex_wait_queue)");
    expect_run(r, 1, 7, RANK_CALL_ALL_REDUCE, STRENGTH_UNKNOWN, 0,
               "all ranks wait, rank 4 in recv after all_reduce 7: a connection between them is lost?");
    r[1].slot.begun = 6;
    r[0].slot.call = RANK_CALL_DEVICE;
    expect(r, STRENGTH_BEHIND, 1, "rank 5 did not reach all_reduce 7 (S, futex_wait_queue)");
    /* Other nodes' ranks have got further. */
    in_call(r, RANK_CALL_ALL_REDUCE, 11);
    expect_run(r, N, 12, RANK_CALL_BARRIER, STRENGTH_BEHIND, 0,
               "rank 4 did not reach barrier 12 (S, futex_wait_queue)");
    expect_run(r, 1, 11, RANK_CALL_ALL_REDUCE, STRENGTH_UNKNOWN, 0,
               "all ranks wait in all_reduce 11: a connection between them is lost?");
    /* The first exchange: one is missing, which never wrote its slot. */
    in_call(r, RANK_CALL_OPEN, 1);
    r[2].slot.begun = r[2].slot.ended = 0;
    r[2].slot.call = r[2].slot.last = RANK_CALL_NONE;
    expect(r, STRENGTH_BEHIND, 2, "rank 6 did not reach the first exchange (S, futex_wait_queue)");
    /* An idle rank takes part in none, alone on its node or not. */
    in_call(r, RANK_CALL_ALL_REDUCE, 12);
    r[0].slot.begun = r[0].slot.ended = 0;
    r[0].slot.call = RANK_CALL_RECV;
    r[0].slot.last = RANK_CALL_NONE;
    r[2].slot.begun = r[2].slot.ended = 11;
    expect(r, STRENGTH_BEHIND, 2, "rank 6 did not reach all_reduce 12 (S, futex_wait_queue)");
    expect_run(r, 1, 12, RANK_CALL_ALL_REDUCE, STRENGTH_UNKNOWN, 0,
               "all ranks wait, rank 4 in recv after all_reduce 12: a connection between them is lost?");
    /* A slot with nonsense. */
    r[0].slot.begun = UINT64_MAX;
    r[0].slot.call = r[0].slot.last = UINT32_MAX;
    const struct suspect s = suspect_find(r, N, 0, 0);
    assert_true(s.number >= 0 && s.number <= INT64_MAX / 2);
}

static void test_stacks(void **state)
{
    struct suspect_rank r[N];

    (void)state;
    sleepers(r);
    for (int i = 0; i < N; i++)
        in_stack(&r[i], true, "train.py:30 main()", 30);
    expect(r, STRENGTH_UNKNOWN, 0,
           "all ranks wait for each other, rank 4 in train.py:30 main(): a connection between them is lost?");
    in_stack(&r[2], false, "train.py:14 step()", 14);
    r[2].cpu_percent = 99;
    expect(r, STRENGTH_STACK, 2, "rank 6 loops in train.py:14 step()");
    r[2].cpu_percent = 0;
    snprintf(r[2].wchan, sizeof(r[2].wchan), "pipe_read");
    expect(r, STRENGTH_STACK, 2, "rank 6 is in train.py:14 step() (S, pipe_read)");
    assert_int_equal(suspect_find(r, N, 0, 0).place, 14);
    /* Those that wait for a GPU do so in their own code: the one that is elsewhere counts, whichever it is. */
    for (int i = 0; i < N; i++)
        in_stack(&r[i], false, i == 3 ? "train.py:14 step()" : "train.py:30 main()", i == 3 ? 14 : 30);
    expect(r, STRENGTH_STACK, 3, "rank 7 is in train.py:14 step() (S, futex_wait_queue)");
    in_stack(&r[3], false, "train.py:30 main()", 30);
    expect(r, STRENGTH_UNKNOWN, 0,
           "cannot tell which rank: all are there, rank 4 is in train.py:30 main() (S, futex_wait_queue)");
    /* Two ranks: the one that sleeps, since who waits for a GPU runs. */
    in_stack(&r[1], false, "train.py:14 step()", 14);
    r[0].cpu_percent = 100;
    expect_run(r, 2, 0, 0, STRENGTH_STACK, 1, "rank 5 is in train.py:14 step() (S, futex_wait_queue)");
    /* One of which nothing is known does not hide the others. */
    sleepers(r);
    in_stack(&r[3], false, "a.py:1 f()", 1);
    expect(r, STRENGTH_STACK, 3, "rank 7 is in a.py:1 f() (S, futex_wait_queue)");
}

static void test_looks(void **state)
{
    struct suspect_rank r[N];

    (void)state;
    sleepers(r);
    r[3].state = 'R';
    expect(r, STRENGTH_UNKNOWN, 0, "cannot tell which rank: rank 4 sleeps (S, futex_wait_queue)");
    r[0].cpu_percent = 97;
    r[0].wchan[0] = '\0';
    expect(r, STRENGTH_UNKNOWN, 0, "cannot tell which rank: rank 4 runs (S)");
    r[0].ended = true;
    expect(r, STRENGTH_UNKNOWN, 0, "cannot tell which rank: rank 4 has ended");
    r[0] = (struct suspect_rank){.rank = 3, .cpu_percent = -1}; /* nothing could be read */
    expect_run(r, 1, 0, 0, STRENGTH_UNKNOWN, 0, "cannot tell which rank: rank 3 sleeps");
}

static void test_description(void **state)
{
    struct suspect_rank r[N];
    char text[SUSPECT_BYTES];

    (void)state;
    in_call(r, RANK_CALL_ALL_REDUCE, 12);
    snprintf(r[0].last_line, sizeof(r[0].last_line), "step 3 loss 0.5");
    suspect_describe(&r[0], text);
    assert_string_equal(
        text, "rank 4 (pid 70): S, futex_wait_queue; CPU 0%; training; in all_reduce 12; last line: "
              "step 3 loss 0.5");
    r[1].slot.ended = 12;
    r[1].slot.call = RANK_CALL_DEVICE;
    r[1].slot.phase = 77;
    suspect_describe(&r[1], text);
    assert_string_equal(
        text, "rank 5 (pid 71): S, futex_wait_queue; CPU 0%; after all_reduce 12; in the GPU's work");
    suspect_describe(&(struct suspect_rank){.rank = 1, .pid = 2, .cpu_percent = -1}, text);
    assert_string_equal(text, "rank 1 (pid 2): not found in /proc");
    suspect_describe(&(struct suspect_rank){.rank = 1, .pid = 2, .cpu_percent = -1, .ended = true}, text);
    assert_string_equal(text, "rank 1 (pid 2): has ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states), cmocka_unit_test(test_collective_calls), cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_looks),  cmocka_unit_test(test_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
