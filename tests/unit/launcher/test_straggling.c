/* test_straggling.c - torchrun names the rank whose steps take longer: on one node, and on two, where the leader's node does.
 *
 * The ranks are this program (argv[1] "rank"): each counts steps in its slot, whose times are made up, until a file ends it.
 */
#include "common/cleanup.h"
#include "common/contract.h"
#include "crew.h"
#include "host/rank_contract.h"
#include "host/rank_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SLOW = 2, POLL_MS = 20, POLLS_MAX = 15000 };

static const char TOLD[] = "torchrun: rank 2 takes ";
static char *self;

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
}

static int rank_main(void)
{
    struct rank_slot *s = rank_state_join(getenv(CONTRACT_ENV_RANK_STATE));
    const int rank = atoi(getenv(CONTRACT_ENV_RANK));

    while (access("end", F_OK) != 0) {
        s->step_us += rank == SLOW ? 15000 : 10000;
        s->wait_us += 1000;
        s->step += 10;
        rest();
    }
    return 0;
}

static void await(const struct run *r)
{
    for (int i = 0; !run_has_said(r, TOLD); i++) {
        assert_true(i < POLLS_MAX);
        rest();
    }
}

/* Once, with the ratio: 16 ms to 11, but for a look between two of a rank's writes. */
static void expect_line(const struct run *r)
{
    const char *at = strstr(buf_str(&r->err), TOLD);
    double ratio = 0;
    int end = 0;

    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(TOLD),
                            "%lf times the median step time: the other ranks wait for it\n%n", &ratio, &end),
                     1);
    assert_true(end && ratio > 1.4 && ratio < 1.5);
    assert_null(strstr(at + strlen(TOLD) + end, "times the median"));
}

static void test_a_slow_rank_is_named(void **state)
{
    const char *const words[] = {"--nproc-per-node=3", "--no-python", self, "rank", NULL};
    static const char *const nodes[][2] = {{"--nproc-per-node=2", "--node-rank=0"},
                                           {"--nproc-per-node=1", "--node-rank=1"}};
    struct run one;
    struct crew two;

    (void)state;
    run_start(&one, words, NULL);
    crew_open(&two, 2);
    two.is_static = true;
    two.conf = "keep_alive_interval=1";
    for (int i = 0; i < 2; i++)
        crew_start(&two, i, RUN_ARGS(nodes[i][0], nodes[i][1], "--nnodes=2", "--no-python", self, "rank"),
                   NULL);
    await(&one);
    await(&two.runs[0]);
    assert_false(run_has_said(&two.runs[1], "times the median"));
    run_touch(&one, "end");
    crew_touch(&two, "end");
    assert_int_equal(run_wait(&one), 0);
    crew_expect(&two, 0);
    expect_line(&one);
    expect_line(&two.runs[0]);
    run_release(&one);
    crew_release(&two);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_slow_rank_is_named)};

    if (argc == 2 && strcmp(argv[1], "rank") == 0)
        return rank_main();
    self = realpath("/proc/self/exe", NULL);
    const int failed = run_main(argc, argv, tests, ARRAY_LEN(tests));
    free(self);
    return failed;
}
