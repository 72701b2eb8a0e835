/* test_hang_torch.c - a training of torch.distributed that hangs: the rank and its line are named. Needs a Python with torch:
 * $TK_TEST_PYTHON, else python3; skipped where there is none. */
#include "common/cleanup.h"
#include "crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SCRIPT[] =
    "exec \"${PYTHON_EXEC:-python3}\" -u " TK_SOURCE_DIR "/tests/unit/launcher/hang_rank.py $HOW 1 $WHERE";

/* What test_hang.c's ranks cannot show: who waits in a call of torch's is not to blame. A rank on each node: what it is in decides
 * between them. */
static void test_who_waits_for_others(void **state)
{
    static const struct {
        const char *how, *ranks, *message;
        int nodes, rank;
    } ways[] = {
        {"left", "--nproc-per-node=4", "no progress for 2 s: rank 1 is in hang_rank.py:", 1, 1},
        {"lost", "--nproc-per-node=2",
         "no progress for 2 s: all ranks wait for each other, rank 0 in hang_rank.py:", 1, 0},
        {"loop", "--nproc-per-node=1", "no progress for 2 s: rank 1 loops in hang_rank.py:", 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        char where[] = "/tmp/test-hang-XXXXXX", file[64], nodes[16];
        struct crew c;
        assert_non_null(mkdtemp(where));
        setenv("WHERE", where, 1);
        setenv("HOW", ways[i].how, 1);
        snprintf(nodes, sizeof(nodes), "--nnodes=%d", ways[i].nodes);
        crew_open(&c, ways[i].nodes);
        crew_start_all(&c, RUN_ARGS(nodes, ways[i].ranks, "--max-restarts=2"), SCRIPT);
        for (int node = 0; node < ways[i].nodes; node++) {
            crew_expect_node(&c, node, node == ways[i].nodes - 1 ? 138 : 140);
            run_blames(&c.runs[node], ways[i].rank, 138, ways[i].message);
        }
        crew_release(&c);
        snprintf(file, sizeof(file), "%s/hangs", where);
        unlink(file);
        assert_int_equal(rmdir(where), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_waits_for_others),
    };
    setenv("TORCHKEEPER_PROGRESS_TIMEOUT", "2", 1);
    return run_torch_main(argc, argv, tests, ARRAY_LEN(tests));
}
