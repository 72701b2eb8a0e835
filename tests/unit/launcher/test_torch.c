/* test_torch.c - Python workers that use torch.distributed run unchanged, 2 nodes of 2 ranks. Needs a Python with torch:
 * $TK_TEST_PYTHON, else python3; skipped where there is none. */
#include "common/cleanup.h"
#include "crew.h"

#include <stdio.h>
#include <string.h>

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
    "code = 0\n"
    "try:\n"
    "    main()\n"
    "except Exception:\n"
    "    code = 1\n"
    "    sys.excepthook(*sys.exc_info())\n"
    "sys.stderr.flush()\n"
    /* A thread of PyTorch that needs the interpreter while it ends aborts the process (SIGABRT). */
    "os._exit(code)\n";

static void start(struct crew *c, const char *restarts, const char *fails)
{
    char path[64];

    crew_open(c, 2);
    snprintf(path, sizeof(path), "/tmp/test-torch-%d.py", c->port);
    FILE *f = fopen(path, "we");
    assert_true(f && fputs(program, f) >= 0 && fclose(f) == 0);
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
    crew_expect(&c, 0);
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
    crew_expect_node(&c, 1, 1);
    crew_expect_node(&c, 0, 140);
    for (int i = 0; i < 2; i++)
        run_blames(&c.runs[i], 3, 1, "ValueError: no such table");
    end(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gloo_over_two_nodes),
        cmocka_unit_test(test_an_exception_is_told_on_both_nodes),
    };
    return run_torch_main(argc, argv, tests, ARRAY_LEN(tests));
}
