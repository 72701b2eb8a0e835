/* test_spawn.c - how many ranks a preset starts when it is alone, and the real program doing so. */
#include "test.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "failing.h"
#include "trainer/run/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static char *trainer;
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

struct started {
    char dir[32];
    pid_t pid;
};

static struct started start(char *const *argv)
{
    struct started s = {.dir = "/tmp/test_spawn_XXXXXX"};

    assert_non_null(mkdtemp(s.dir));
    fflush(NULL);
    s.pid = fork();
    assert_true(s.pid >= 0);
    if (s.pid)
        return s;
    if (chdir(s.dir) || dup2(open("out", O_WRONLY | O_CREAT, 0600), 1) < 0 ||
        dup2(open("err", O_WRONLY | O_CREAT, 0600), 2) < 0)
        _exit(99);
    setenv("PET_MAX_RESTARTS", "5", 1); /* means somebody else's launcher */
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    execv(trainer, argv);
    _exit(98);
}

static void read_file(const struct started *s, const char *name, struct buf *out)
{
    char path[64];
    struct err err;

    buf_clear(out);
    snprintf(path, sizeof(path), "%s/%s", s->dir, name);
    assert_int_equal(fs_read(path, out, &err), 0);
}

/* The exit code, and what was said on both streams. */
static int finish(struct started *s, struct buf *out, struct buf *err_text)
{
    char command[64];
    int status;

    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    read_file(s, "out", out);
    read_file(s, "err", err_text);
    snprintf(command, sizeof(command), "rm -rf %s", s->dir);
    assert_int_equal(system(command), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void ranks_are_started(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT(1 << 16), err = BUF_INIT(1 << 16);
    struct started s = start((char *[]){trainer, "linear", "--nprocs", "2", "--epochs=2", NULL});

    assert_int_equal(finish(&s, &out, &err), 0);
    assert_string_equal(buf_str(&err), "");
    for (int rank = 0; rank < 2; rank++)
        for (int epoch = 0; epoch < 2; epoch++) {
            char line[80];
            snprintf(line, sizeof(line), "[GPU: %d] Epoch: %d | Batchsize: 32 | Steps: 32\n", rank, epoch);
            assert_non_null(strstr(buf_str(&out), line));
        }
    assert_int_equal(out.len, 4 * strlen("[GPU: 0] Epoch: 0 | Batchsize: 32 | Steps: 32\n"));
}

static void the_root_cause_is_the_exit_status(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT(1 << 16), err = BUF_INIT(1 << 16);
    struct started s = start((char *[]){trainer, "linear", "--nprocs=3", "--lr=1e6", NULL});

    assert_int_equal(finish(&s, &out, &err), 1);
    assert_non_null(strstr(buf_str(&err), "the loss is"));
    assert_null(strstr(buf_str(&err), "restart")); /* PET_MAX_RESTARTS was not for us */
    s = start((char *[]){trainer, "linear", "--nprocs=2", "--epoch", NULL});
    assert_int_equal(finish(&s, &out, &err), 2);
    assert_string_equal(buf_str(&err),
                        "trainer: --epoch: unknown option; did you mean --epochs? (trainer linear --help)\n");
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
        cleanup_buf struct buf out = BUF_INIT(1 << 16), err = BUF_INIT(1 << 16);
        struct started s = start((char *[]){trainer, (char *)(uintptr_t)cases[i].word, NULL});
        assert_int_equal(finish(&s, &out, &err), cases[i].code);
        assert_ptr_equal(strstr(buf_str(&err), cases[i].says), buf_str(&err));
        if (!cases[i].code)
            assert_ptr_equal(strstr(buf_str(&out), "trainer (Torchkeeper) "), buf_str(&out));
    }
}

/* SIGTERM to the process that was started stops all ranks after the same step. */
static void signals_are_passed_on(void **state)
{
    (void)state;
    cleanup_buf struct buf out = BUF_INIT(1 << 24), err = BUF_INIT(1 << 16);
    const struct timespec tick = {.tv_nsec = 2000000};
    struct started s = start((char *[]){trainer, "linear", "--nprocs", "2", "--epochs", "1000000", NULL});

    for (int i = 0; i < 20000 && !out.len; i++) {
        char path[64];
        struct err ignored;
        snprintf(path, sizeof(path), "%s/out", s.dir);
        (void)!fs_read(path, &out, &ignored);
        nanosleep(&tick, NULL);
    }
    assert_true(out.len > 0);
    kill(s.pid, SIGTERM);
    buf_clear(&out);
    assert_int_equal(finish(&s, &out, &err), 143);
    assert_non_null(strstr(buf_str(&out), "stopped by SIGTERM after epoch "));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_to_count),
        cmocka_unit_test(counts),
        cmocka_unit_test(a_launcher_decides),
        cmocka_unit_test(ranks_are_started),
        cmocka_unit_test(the_root_cause_is_the_exit_status),
        cmocka_unit_test(words_are_explained),
        cmocka_unit_test(signals_are_passed_on),
    };

    if (argc < 2)
        return 99;
    trainer = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
