/* test_hang_torch.c - a training of torch.distributed that hangs: the rank and its line are named. Needs a Python with torch:
 * $TK_TEST_PYTHON, else python3; skipped where there is none. */
#include "common/cleanup.h"
#include "crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SCRIPT[] =
    "exec \"${PYTHON_EXEC:-python3}\" -u " TK_SOURCE_DIR "/tests/unit/launcher/hang_rank.py $HOW 1 $WHERE";

static void test_each_way(void **state)
{
    static const struct {
        const char *how, *ranks, *message;
        int rank;
    } ways[] = {
        {"stopped", "--nproc-per-node=2", "no progress for 2 s: rank 1 is stopped (T)", 1},
        {"loop", "--nproc-per-node=3", "no progress for 2 s: rank 1 loops in hang_rank.py:", 1},
        {"fifo", "--nproc-per-node=2", "no progress for 2 s: rank 1 is in hang_rank.py:", 1},
        {"lock", "--nproc-per-node=2", "stand() (S", 1},
        {"disk", "--nproc-per-node=2", "no progress for 2 s: rank 1 is in uninterruptible sleep (D", 1},
        {"left", "--nproc-per-node=4", "no progress for 2 s: rank 1 is in hang_rank.py:", 1},
        {"lost", "--nproc-per-node=2",
         "no progress for 2 s: all ranks wait for each other, rank 0 in hang_rank.py:", 0},
    };
    struct run r;
    char where[] = "/tmp/test-hang-XXXXXX", file[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        assert_non_null(mkdtemp(where));
        setenv("WHERE", where, 1);
        setenv("HOW", ways[i].how, 1);
        assert_int_equal(run_once(RUN_ARGS(ways[i].ranks, "--max-restarts=2"), SCRIPT, &r), 138);
        run_blames(&r, ways[i].rank, 138, ways[i].message);
        run_release(&r);
        for (int k = 0; k < 2; k++) {
            snprintf(file, sizeof(file), "%s/%s", where, k ? "fifo" : "hangs");
            unlink(file);
        }
        assert_int_equal(rmdir(where), 0);
        snprintf(where, sizeof(where), "/tmp/test-hang-XXXXXX");
    }
}

/* A rank on each node: what it is in decides between them. */
static void test_two_nodes(void **state)
{
    struct crew c;
    char where[] = "/tmp/test-hang-XXXXXX", file[64];

    (void)state;
    assert_non_null(mkdtemp(where));
    setenv("WHERE", where, 1);
    setenv("HOW", "loop", 1);
    crew_open(&c, 2);
    crew_start_all(&c, RUN_ARGS("--nnodes=2", "--max-restarts=2"), SCRIPT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(crew_wait(&c, i), i ? 138 : 140);
        run_blames(&c.runs[i], 1, 138, "no progress for 2 s: rank 1 loops in hang_rank.py:");
    }
    crew_release(&c);
    snprintf(file, sizeof(file), "%s/hangs", where);
    unlink(file);
    assert_int_equal(rmdir(where), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way),
        cmocka_unit_test(test_two_nodes),
    };
    setenv("TORCHKEEPER_PROGRESS_TIMEOUT", "2", 1);
    return run_torch_main(argc, argv, tests, ARRAY_LEN(tests));
}
