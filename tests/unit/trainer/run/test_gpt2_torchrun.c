/* test_gpt2_torchrun.c - `torchrun ... trainer gpt2`, the real programs: eight ranks, two nodes and one process without any variable
 * train the same; one rank alone speaks. */
#include "../../ports.h"
#include "shard.h"
#include "test.h"

#include "common/cleanup.h"
#include "common/fsutil.h"
#include "launcher/run.h"
#include "trainer/data/tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 8, TIME = 8, STEPS = 3, TOKENS_MAX = STEPS * RANKS * TIME + 1 };

static char *trainer;

struct fixture {
    char dir[64], shard[96], weights[96];
};

/* So many windows. */
static void put_shard(const char *path, int windows)
{
    uint8_t shard[TOKENS_SHARD_HEADER + 2 * TOKENS_MAX];
    const int tokens = windows * TIME + 1;
    struct err err;

    shard_header(tokens, shard);
    for (int i = 0; i < tokens; i++) {
        shard[TOKENS_SHARD_HEADER + 2 * i] = (uint8_t)(i * i % 31 + i % 7);
        shard[TOKENS_SHARD_HEADER + 2 * i + 1] = 0;
    }
    assert_int_equal(fs_write_atomic(path, shard, TOKENS_SHARD_HEADER + 2 * (size_t)tokens, &err), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char val[96];

    snprintf(f->dir, sizeof(f->dir), "/tmp/test_gpt2_torchrun.XXXXXX");
    *state = f;
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->shard, sizeof(f->shard), "%s/a_train_0.bin", f->dir);
    snprintf(f->weights, sizeof(f->weights), "%s/m.safetensors", f->dir);
    put_shard(f->shard, RANKS * STEPS);
    snprintf(val, sizeof(val), "%s/a_val_0.bin", f->dir);
    put_shard(val, 3);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    int rc = system(command);
    free(f);
    return rc;
}

/* A byte model: a window goes through a rank at a time, and 8 of them are a step on however many ranks. */
#define MODEL                                                                                                \
    "gpt2", "--no_cuda", "--n_layer=1", "--n_head=2", "--n_embd=16", "--block_size=8", "--vocab_size=64",    \
        "--batch_size=1", "--total_batch_tokens=64", "--lr=0.1", "--save_seconds=0", "--threads=1", "--data"
#define TORCHRUN(...) RUN_ARGS(__VA_ARGS__, "--no_python", trainer, MODEL, f->dir, "--save_path", f->weights)

static void take_weights(const struct fixture *f, struct buf *out)
{
    struct err err;

    buf_clear(out);
    if (fs_read(f->weights, out, &err))
        fail_msg("%s", err.msg);
    unlink(f->weights);
}

/* What the run must print on stdout: one rank's lines. (STEPS losses and that of the validation) */
static void losses_of(const char *said, double *loss)
{
    int n = 0;

    for (const char *at = said; (at = strstr(at, " with loss: ")) != NULL; n++) {
        if (n < STEPS)
            loss[n] = strtod(at + 12, NULL);
        at++;
    }
    /* Three windows validate, which not every rank has one of. */
    const char *val = strstr(said, "epoch 1/1 with val loss: ");
    loss[STEPS] = val ? strtod(val + 25, NULL) : NAN;
    if (n != STEPS || !strstr(said, "epoch 1/1, batch     3/3 with loss: "))
        fail_msg("%d losses, expected %d:\n%s", n, STEPS, said);
}

/* Weights and losses of a run that ends well, by so many ranks of one node, or of each of two: as on two hosts each launcher has its
 * own half, and the second one's ranks are silent. said: behind it, what rank 0 did; NULL: not wanted. */
static void train(const struct fixture *f, int nodes, int procs, struct buf *weights, double *loss,
                  struct buf *said)
{
    char count[32], port[32];
    struct run r[2];

    snprintf(count, sizeof(count), "--nproc_per_node=%d", procs);
    snprintf(port, sizeof(port), "--master_port=%d", ports_take());
    for (int i = 0; i < nodes; i++)
        run_start(&r[i],
                  nodes == 1 ? TORCHRUN(count)
                             : TORCHRUN(count, "--nnodes=2", i ? "--node_rank=1" : "--node_rank=0",
                                        "--master_addr=127.0.0.1", port),
                  NULL);
    for (int i = 0; i < nodes; i++) {
        int rc = run_wait(&r[i]);
        if (rc)
            fail_msg("node %d: %d: %s", i, rc, buf_str(&r[i].err));
    }
    losses_of(buf_str(&r[0].out), loss);
    if (said)
        assert_int_equal(buf_append(said, buf_str(&r[0].out), r[0].out.len, &(struct err){0}), 0);
    for (int i = 0; i < nodes; i++) {
        if (i)
            assert_string_equal(buf_str(&r[i].out), "");
        run_release(&r[i]);
    }
    take_weights(f, weights);
}

/* One process, as it is started by hand. */
static void train_alone(const struct fixture *f, struct buf *weights, double *loss)
{
    char *torchrun = run_torchrun;
    struct run r;

    run_torchrun = trainer;
    assert_int_equal(run_once(RUN_ARGS(MODEL, f->dir, "--save_path", f->weights), NULL, &r), 0);
    run_torchrun = torchrun;
    losses_of(buf_str(&r.out), loss);
    run_release(&r);
    take_weights(f, weights);
}

static void assert_same(const struct buf *a, const struct buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

static void assert_near(const double *a, const double *b)
{
    for (int i = 0; i <= STEPS; i++)
        assert_true(fabs(a[i] - b[i]) < 2e-4); /* four digits are shown */
}

/* Eight micro-batches of one process are eight ranks' one, bit by bit; in between sums are grouped otherwise, as one number is
 * by rounding. */
static void ranks_train_what_one_process_does(void **state)
{
    static const struct {
        int nodes, procs;
    } ways[] = {{1, 8}, {2, 4}, {1, 4}};
    struct fixture *f = *state;
    cleanup_buf struct buf one = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    double alone[STEPS + 1], loss[STEPS + 1];

    train_alone(f, &one, alone);
    assert_true(alone[0] != alone[2]);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        train(f, ways[i].nodes, ways[i].procs, &got, loss, NULL);
        if (ways[i].nodes * ways[i].procs == RANKS)
            assert_same(&got, &one);
        assert_near(loss, alone);
    }
}

/* Eight windows a step: of three ranks two train them, of two nodes of three ranks each four, and the others wait. They report that
 * once, and write what two or four ranks alone do. */
static void ranks_that_cannot_share_the_batch_wait(void **state)
{
    static const char *const says[] = {NULL, "2 of 3 ranks train and 1 waits for the end",
                                       "4 of 6 ranks train and 2 wait for the end"};
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
    double loss[STEPS + 1];

    for (int nodes = 1; nodes <= 2; nodes++) {
        char text[256];
        train(f, 1, 2 * nodes, &want, loss, NULL);
        snprintf(
            text, sizeof(text),
            "%s: --total_batch_tokens 64: expected 1..1024 times %d (8 tokens x batch size 1 x %d ranks)\n",
            says[nodes], 24 * nodes, 3 * nodes);
        cleanup_buf struct buf out = BUF_INIT(1 << 16);
        train(f, nodes, 3, &got, loss, &out);
        const char *said = strstr(buf_str(&out), text);
        assert_non_null(said);
        assert_null(strstr(strchr(said, '\n'), " ranks train and "));
        assert_same(&got, &want);
    }
}

/* What more ranks could train may be tried again; what none could may not. */
static void ranks_that_are_too_few_may_become_more(void **state)
{
    static const struct {
        const char *tokens, *says;
        int code;
    } cases[] = {{"--total_batch_tokens=16384",
                  "more ranks than 1 are needed: --total_batch_tokens 16384: expected ", 138},
                 {"--total_batch_tokens=60",
                  "trainer: rank 0: --total_batch_tokens 60: expected 1..1024 times 8 (", 2}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run r;
        const int code = run_once(
            RUN_ARGS("--nproc_per_node=1", "--no_python", trainer, MODEL, f->dir, cases[i].tokens), NULL, &r);
        if (code != cases[i].code || !strstr(buf_str(&r.err), cases[i].says))
            fail_msg("%d: %s", code, buf_str(&r.err));
        run_release(&r);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_train_what_one_process_does, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_that_cannot_share_the_batch_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_that_are_too_few_may_become_more, setup, teardown),
    };

    if (argc < 3)
        return 99;
    trainer = argv[1];
    run_torchrun = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
