/* test_faults.c - a stage that dies or stops while its neighbours send to it or wait for it. */
#include "test.h"

#include "../../patience.h"
#include "../training.h"
#include "common/contract.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int victim, blow;

static void strike(int rank, int step)
{
    if (rank == victim && step == 2)
        raise(blow);
}

static struct training troubled(int rank, int with, int64_t timeout_ms)
{
    struct training task = training_usual(3, 80, 2);

    victim = rank;
    blow = with;
    task.wide = 4096; /* more than a socket holds: the neighbours are caught in the middle of a message */
    task.epochs = 6;
    task.trouble = strike;
    task.timeout_ms = timeout_ms;
    return task;
}

/* Nobody waits for the deadline, which would give 138. */
static void all_leave_when_a_stage_dies(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        struct training_shared *s = training_new(troubled(rank, SIGKILL, RANKS_TIMEOUT_MS));
        struct ranks r;
        ranks_start(&r, 3, training_body, s);
        ranks_wait(&r);
        for (int i = 0; i < 3; i++) {
            if (i == rank) {
                assert_true(WIFSIGNALED(r.status[i]));
                continue;
            }
            assert_true(WIFEXITED(r.status[i]));
            assert_int_equal(WEXITSTATUS(r.status[i]), EXIT_CODE_PEER_LOST);
            assert_int_equal(s->trace[i].steps, 2);
            assert_non_null(strstr(s->trace[i].err.msg, "went away"));
        }
        training_free(s);
    }
}

/* A stopped stage is met by the deadline: the first to notice leaves with 138, and those behind it with that or 140. False: the
 * deadline came before the stop. */
static bool is_met_by_the_deadline(int rank, int64_t timeout_ms)
{
    struct training_shared *s = training_new(troubled(rank, SIGSTOP, timeout_ms));
    struct ranks r;
    int deadlines = 0;

    ranks_start(&r, 3, training_body, s);
    assert_int_equal(waitpid(r.pids[rank], &r.status[rank], WUNTRACED), r.pids[rank]);
    const bool stopped = WIFSTOPPED(r.status[rank]);
    for (int i = 0; i < 3; i++) {
        if (i == rank)
            continue;
        assert_int_equal(waitpid(r.pids[i], &r.status[i], 0), r.pids[i]);
        assert_true(WIFEXITED(r.status[i]));
        int code = WEXITSTATUS(r.status[i]);
        assert_true(code == EXIT_CODE_RETRYABLE || code == EXIT_CODE_PEER_LOST);
        deadlines += code == EXIT_CODE_RETRYABLE;
    }
    assert_true(deadlines >= 1 || !stopped);
    if (stopped) {
        assert_int_equal(kill(r.pids[rank], SIGKILL), 0);
        assert_int_equal(waitpid(r.pids[rank], &r.status[rank], 0), r.pids[rank]);
    }
    training_free(s);
    return stopped;
}

static void a_stopped_stage_is_met_by_the_deadline(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++)
        for (int64_t ms = 1500; !is_met_by_the_deadline(rank, ms);)
            ms = patience_grow(ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_leave_when_a_stage_dies),
        cmocka_unit_test(a_stopped_stage_is_met_by_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
