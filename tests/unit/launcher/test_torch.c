/* test_torch.c - Python workers that use torch.distributed run unchanged, 2 nodes of 2 ranks. Needs a Python with torch:
 * $TK_TEST_PYTHON, else python3; skipped where there is none. */
#include "common/cleanup.h"
#include "crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SKIPPED = 77 };

static const char program[] =
    "import os, sys\n"
    "import torch, torch.distributed as dist\n"
    "from torch.distributed.elastic.multiprocessing.errors import record\n"
    "@record\n"
    "def main():\n"
    "    dist.init_process_group('gloo')\n"
    "    t = torch.tensor([float(dist.get_rank() + 1)])\n"
    "    dist.all_reduce(t)\n"
    "    attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
    "    print(f'attempt {attempt} rank {dist.get_rank()} of {dist.get_world_size()} sum {t.item()}', "
    "flush=True)\n"
    "    if len(sys.argv) > 1 and dist.get_rank() == 3 and attempt in sys.argv[1]:\n"
    "        raise ValueError('no such table')\n"
    "    dist.barrier()\n"
    "    dist.destroy_process_group()\n"
    "main()\n";

static void write_program(const struct crew *c)
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/test-torch-%d.py", c->port);
    cleanup_fclose FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(program, f) >= 0);
}

static void start(struct crew *c, const char *restarts, const char *fails)
{
    char path[64];

    crew_open(c, 2);
    write_program(c);
    snprintf(path, sizeof(path), "/tmp/test-torch-%d.py", c->port);
    crew_start_all(c, RUN_ARGS("--nnodes=2", "--nproc-per-node=2", restarts, path, fails), NULL);
}

static void end(struct crew *c)
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/test-torch-%d.py", c->port);
    assert_int_equal(remove(path), 0);
    crew_release(c);
}

static void expect_output(const struct crew *c, int attempt)
{
    for (int rank = 0; rank < 4; rank++) {
        char want[80];
        snprintf(want, sizeof(want), "attempt %d rank %d of 4 sum 10.0", attempt, rank);
        if (!strstr(buf_str(&c->runs[rank / 2].out), want))
            fail_msg("expected \"%s\" in: %s%s", want, buf_str(&c->runs[rank / 2].out),
                     buf_str(&c->runs[rank / 2].err));
    }
}

static void test_gloo_over_two_nodes(void **state)
{
    struct crew c;

    (void)state;
    start(&c, "--max-restarts=1", "0"); /* fails once, is started again, ends well */
    for (int i = 0; i < 2; i++)
        if (crew_wait(&c, i) != 0)
            fail_msg("node %d: %s", i, buf_str(&c.runs[i].err));
    /* Which launcher is node 0 does not depend on who came first: it hosts the leader. */
    expect_output(&c, 0);
    expect_output(&c, 1);
    end(&c);
}

static void test_an_exception_is_told_on_both_nodes(void **state)
{
    struct crew c;

    (void)state;
    start(&c, "--max-restarts=0", "0");
    assert_int_equal(crew_wait(&c, 1), 1);
    assert_int_equal(crew_wait(&c, 0), 140);
    for (int i = 0; i < 2; i++) {
        const char *root = strstr(buf_str(&c.runs[i].err), "Root Cause (first observed failure):");
        assert_non_null(root);
        assert_non_null(strstr(root, "rank      : 3 (local_rank: 1)"));
        assert_non_null(strstr(root, "ValueError: no such table"));
    }
    end(&c);
}

static bool has_torch(void)
{
    const char *python = getenv("TK_TEST_PYTHON");
    char command[400];

    if (python)
        setenv("PYTHON_EXEC", python, 1);
    snprintf(command, sizeof(command), "'%.300s' -c 'import torch' 2>/dev/null", python ? python : "python3");
    return system(command) == 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gloo_over_two_nodes),
        cmocka_unit_test(test_an_exception_is_told_on_both_nodes),
    };

    if (argc != 2 || !(run_torchrun = realpath(argv[1], NULL)))
        return 2;
    if (!has_torch()) {
        printf("skipped: no Python with torch (TK_TEST_PYTHON names one)\n");
        free(run_torchrun);
        return SKIPPED;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(run_torchrun);
    return failed;
}
