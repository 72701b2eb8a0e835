/* test_mpi.c - every collective between processes that an MPI launcher has started; one that stops, one that dies; and
 * the trainer, whose weights are those of --backend gloo, bit for bit. */
#include "calls.h"

#include <stdio.h>

#ifndef TK_MPIRUN
int main(void)
{
    printf("built without an MPI library and its launcher\n");
    return 77;
}
#else
#include "common/clock.h"
#include "trainer/collectives/mpi/state.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* The collectives of the library itself; that the program finds it is for the last test. */
static struct collectives *open_table(struct collectives *c)
{
    struct collectives_config cfg = {.backend = COLLECTIVES_MPI};
    struct err err = {0};

    if (collectives_config_read(&cfg, collectives_mpi_getenv, &err) < 0)
        return NULL;
    *c = (struct collectives){.rank = cfg.rank, .world = cfg.world};
    if (mpi_open(c, RANKS_TIMEOUT_MS, &err) == 0)
        return c;
    fprintf(stderr, "open: %s\n", err.msg);
    return NULL;
}

/* The last rank is gone or stopped when the others call. */
static int lose_last(struct collectives *c, int signo, int64_t timeout_ms)
{
    struct err err = {0};
    float x = 1;

    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    if (c->rank == c->world - 1)
        raise(signo);
    RANK_CHECK(c->all_reduce(c, &x, 1, NULL, timeout_ms, &err) < 0);
    RANK_CHECK(c->barrier(c, timeout_ms, &err) < 0);
    return collectives_exit_code(&err);
}

/* The last rank ends by itself, and closes its table as it should, while the others go on. */
static int leave_early(struct collectives *c)
{
    struct err err = {0};
    float x = 1;

    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    if (c->rank == c->world - 1)
        return 0;
    RANK_CHECK(c->all_reduce(c, &x, 1, NULL, RANKS_TIMEOUT_MS, &err) < 0);
    RANK_CHECK(err.kind == ERR_PEER && strstr(err.msg, "went away"));
    RANK_CHECK(c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0);
    return collectives_exit_code(&err);
}

static int rank_main(const char *mode)
{
    struct collectives table, *c = open_table(&table);
    int rc;

    if (!c)
        return RANK_FAILED;
    if (strcmp(mode, "stop") == 0)
        rc = lose_last(c, SIGSTOP, 500);
    else if (strcmp(mode, "die") == 0)
        rc = lose_last(c, SIGKILL, RANKS_TIMEOUT_MS);
    else if (strcmp(mode, "leave") == 0)
        rc = leave_early(c);
    else
        rc = calls_body(c);
    c->close(c);
    return rc;
}

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    const int status = system(line);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run_ranks(int n, const char *mode)
{
    char self[512] = "";

    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    return run(TK_MPIRUN " -n %d %s %s </dev/null", n, self, mode);
}

static void test_calls(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++)
        assert_int_equal(run_ranks(n, "calls"), 0);
}

static void test_stopped_peer(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, "stop"), 138);
}

/* Which of the two the launcher reports is its own choice: the one that died, or the one that lost it. */
static void test_killed_peer(void **state)
{
    (void)state;
    const int code = run_ranks(2, "die");
    assert_true(code == 128 + SIGKILL || code == 140);
}

static void test_peer_that_leaves(void **state)
{
    const int64_t began_ms = clock_mono_ms();

    (void)state;
    assert_int_equal(run_ranks(3, "leave"), 140);
    assert_true(clock_mono_ms() - began_ms < RANKS_TIMEOUT_MS / 2);
}

static void test_trainer_ends_with_the_same_bits(void **state)
{
    char dir[] = "/tmp/test-mpi-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(run("mkdir %s/a %s/b", dir, dir), 0);
    assert_int_equal(run(TK_MPIRUN " -n 2 " TK_BIN
                                   "/trainer linear --backend mpi --ckpt_dir %s/a/c --save_path %s/a/w.pt "
                                   "</dev/null >/dev/null",
                         dir, dir),
                     0);
    assert_int_equal(
        run(TK_BIN "/trainer linear --nprocs 2 --ckpt_dir %s/b/c --save_path %s/b/w.pt >/dev/null", dir, dir),
        0);
    assert_int_equal(run("cmp %s/a/w.pt %s/b/w.pt", dir, dir), 0);
    assert_int_equal(run("rm -r %s", dir), 0);
}

static void test_without_a_launcher(void **state)
{
    (void)state;
    assert_int_equal(run(TK_BIN "/trainer linear --backend mpi"), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_stopped_peer),
        cmocka_unit_test(test_killed_peer),
        cmocka_unit_test(test_peer_that_leaves),
        cmocka_unit_test(test_trainer_ends_with_the_same_bits),
        cmocka_unit_test(test_without_a_launcher),
    };

    if (argc > 1)
        return rank_main(argv[1]);
    /* Open MPI refuses root, and more ranks than CPUs, unless told otherwise. */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
