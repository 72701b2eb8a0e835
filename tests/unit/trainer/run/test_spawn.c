/* test_spawn.c - how many ranks a preset starts when it is alone, and the real program doing so. */
#include "test.h"

#include "common/cleanup.h"
#include "failing.h"
#include "launcher/run.h"
#include "trainer/run/spawn.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *the_rank, *the_gpus;

static char *environment(const char *name)
{
    if (strcmp(name, "RANK") == 0)
        return (char *)the_rank;
    return strcmp(name, "CUDA_VISIBLE_DEVICES") == 0 ? (char *)the_gpus : NULL;
}

static int64_t count(void *dev)
{
    struct config cfg = {.nprocs_default = NPROCS_GPUS};
    struct err err;
    int n;

    failing_begin();
    return spawn_count(&cfg, environment, dev, &n, &err) ? -1 : n;
}

/* No memory is not the same as no GPU: one rank would train on a CPU. */
static void no_memory_to_count(void **state)
{
    struct failing_end end;

    (void)state;
    if (failing_skip())
        skip();
    the_rank = the_gpus = NULL;
    failing_try(1, count, (char[]){"/dev"}, &end);
    assert_true(end.exhausted);
}

static void counts(void **state)
{
    (void)state;
    char dev[] = "/tmp/test_spawn_XXXXXX";
    char path[64];
    static const char *const files[] = {"nvidia0", "nvidia1", "nvidia11", "nvidiactl", "nvidia-uvm", "null"};
    static const struct {
        int64_t nprocs, fallback;
        const char *gpus;
        bool no_cuda;
        int want;
    } cases[] = {
        {0, 0, NULL, false, 1},
        {4, 0, NULL, false, 4},
        {1, 3, NULL, false, 1},
        {0, 3, NULL, true, 3},
        {0, NPROCS_GPUS, NULL, false, 3},
        {0, NPROCS_GPUS, NULL, true, 1},
        {0, NPROCS_GPUS, "", false, 1},
        {0, NPROCS_GPUS, "-1", false, 1},
        {0, NPROCS_GPUS, "0,5", false, 1}, /* of three devices there is no 5 */
        {0, NPROCS_GPUS, "0,1,-1,2", false, 2},
        {0, NPROCS_GPUS, "GPU-1234,GPU-5678,", false, 2},
        {2, NPROCS_GPUS, "0,1,2,3", false, 2},
    };

    assert_non_null(mkdtemp(dev));
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", dev, files[i]);
        cleanup_fclose FILE *f = fopen(path, "w");
        assert_non_null(f);
    }
    the_rank = NULL;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config cfg = {
            .nprocs = cases[i].nprocs, .nprocs_default = cases[i].fallback, .no_cuda = cases[i].no_cuda};
        struct err err;
        int got = -1;
        the_gpus = cases[i].gpus;
        assert_int_equal(spawn_count(&cfg, environment, dev, &got, &err), 0);
        assert_int_equal(got, cases[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", dev, files[i]);
        unlink(path);
    }
    rmdir(dev);
}

static void a_launcher_decides(void **state)
{
    (void)state;
    struct config cfg = {.nprocs_default = 3};
    struct err err = {0};
    int got = -1;

    the_rank = "2";
    assert_int_equal(spawn_count(&cfg, environment, "/dev", &got, &err), 0);
    assert_int_equal(got, 1);
    cfg.nprocs = 2;
    assert_int_equal(spawn_count(&cfg, environment, "/dev", &got, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "--nprocs 2: a launcher has started this as RANK=2"));
}

/* ---- the program ---- */

static void ranks_are_started(void **state)
{
    (void)state;
    struct run r;

    assert_int_equal(run_once(RUN_ARGS("linear", "--nprocs", "2", "--epochs=2"), NULL, &r), 0);
    assert_string_equal(buf_str(&r.err), "");
    for (int rank = 0; rank < 2; rank++)
        for (int epoch = 0; epoch < 2; epoch++) {
            char line[80];
            snprintf(line, sizeof(line), "[GPU: %d] Epoch: %d | Batchsize: 32 | Steps: 32\n", rank, epoch);
            run_says(&r.out, line);
        }
    assert_int_equal(r.out.len, 4 * strlen("[GPU: 0] Epoch: 0 | Batchsize: 32 | Steps: 32\n"));
    run_release(&r);
}

static void the_root_cause_is_the_exit_status(void **state)
{
    (void)state;
    struct run r;

    assert_int_equal(run_once(RUN_ARGS("linear", "--nprocs=3", "--lr=1e6"), NULL, &r), 1);
    run_says(&r.err, "the loss is");
    assert_null(strstr(buf_str(&r.err), "restart")); /* PET_MAX_RESTARTS was not for us */
    run_release(&r);
    assert_int_equal(run_once(RUN_ARGS("linear", "--nprocs=2", "--epoch"), NULL, &r), 2);
    assert_string_equal(buf_str(&r.err),
                        "trainer: --epoch: unknown option; did you mean --epochs? (trainer linear --help)\n");
    run_release(&r);
}

static void words_are_explained(void **state)
{
    static const struct {
        const char *word, *says;
        int code;
    } cases[] = {
        {"linear.yaml", "trainer: linear.yaml: No such file", 2},
        {"mnist-small.yml", "trainer: mnist-small.yml: No such file", 2},
        {"linear_v2/model.yaml", "trainer: linear_v2/model.yaml: No such file", 2},
        {"linear/", "trainer: linear/: No such file", 2},
        {"model.json", "trainer: \"model.json\": no such preset (there are: ", 2},
        {"Linear", "trainer: \"Linear\": no such preset; did you mean linear? (there are: ", 2},
        {"resnet", "trainer: \"resnet\": no such preset (there are: ", 2},
        {"--epochs", "trainer: --epochs: expected the name of a preset or a model file before the options",
         2},
        {"--version", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r;
        assert_int_equal(run_once(RUN_ARGS(cases[i].word), NULL, &r), cases[i].code);
        assert_ptr_equal(strstr(buf_str(&r.err), cases[i].says), buf_str(&r.err));
        if (!cases[i].code)
            assert_ptr_equal(strstr(buf_str(&r.out), "trainer (Torchkeeper) "), buf_str(&r.out));
        run_release(&r);
    }
}

/* SIGTERM to the process that was started stops all ranks after the same step. */
static void signals_are_passed_on(void **state)
{
    (void)state;
    cleanup_buf struct buf seen = BUF_INIT(1 << 24);
    char piece[4096];
    int ends[2];
    struct run r;

    assert_int_equal(pipe(ends), 0);
    run_start_on(&r, RUN_ARGS("linear", "--nprocs", "2", "--epochs", "1000000"), NULL, ends[1], -1);
    close(ends[1]);
    assert_true(read(ends[0], piece, sizeof(piece)) > 0); /* they train */
    kill(r.pid, SIGTERM);
    for (ssize_t n; (n = read(ends[0], piece, sizeof(piece))) > 0;)
        assert_int_equal(buf_append(&seen, piece, (size_t)n, &(struct err){0}), 0);
    close(ends[0]);
    assert_int_equal(run_wait(&r), 143);
    run_says(&seen, "stopped by SIGTERM after epoch ");
    run_release(&r);
}

static void threads_of_a_rank(void **state)
{
    (void)state;
    assert_int_equal(spawn_threads(NULL, 8, 2, 256), 4);
    assert_int_equal(spawn_threads(NULL, 2, 4, 256), 1);
    assert_int_equal(spawn_threads(NULL, 8, 0, 256), 8);
    assert_int_equal(spawn_threads(NULL, 1000, 1, 256), 256);
    assert_int_equal(spawn_threads("3", 8, 2, 256), 3);
    assert_int_equal(spawn_threads("4,2", 8, 2, 256), 4);
    assert_int_equal(spawn_threads("1", 8, 1, 256), 1);
    assert_int_equal(spawn_threads("junk", 8, 2, 256), 4);
    assert_int_equal(spawn_threads("0", 8, 2, 256), 4);
    assert_int_equal(spawn_threads("99999", 8, 2, 256), 256);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_to_count),  cmocka_unit_test(counts),
        cmocka_unit_test(threads_of_a_rank),   cmocka_unit_test(a_launcher_decides),
        cmocka_unit_test(ranks_are_started),   cmocka_unit_test(the_root_cause_is_the_exit_status),
        cmocka_unit_test(words_are_explained), cmocka_unit_test(signals_are_passed_on),
    };

    if (argc < 2)
        return 99;
    run_torchrun = argv[1];             /* the program that run.h starts */
    setenv("PET_MAX_RESTARTS", "5", 1); /* means somebody else's launcher */
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
