/* test_kctx.c - choosing instruction sets, scratch memory, threads that do every unit once. */
#include "check.h"
#include "kernels/cpu/run.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_names(void **state)
{
    enum kctx_isa isa = KCTX_ISA_AUTO;

    (void)state;
    for (int i = KCTX_ISA_AUTO; i <= KCTX_ISA_AVX512; i++) {
        assert_true(kctx_isa_parse(kctx_isa_name((enum kctx_isa)i), &isa));
        assert_int_equal(isa, i);
    }
    assert_false(kctx_isa_parse("AVX512", &isa));
    assert_false(kctx_isa_parse("", &isa));
    assert_true(kctx_isa_supported(KCTX_ISA_PLAIN));
}

static void test_environment_chooses_unless_told(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(setenv("TK_ISA", "plain", 1), 0);
    struct kctx *ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_non_null(ctx);
    assert_int_equal(kctx_isa(ctx), KCTX_ISA_PLAIN);
    assert_int_equal(kctx_threads(ctx), 1);
    kctx_free(ctx);
    for (enum kctx_isa isa = isa_first(); isa; isa = isa_next(isa)) {
        ctx = kctx_make(&(struct kctx_options){.isa = isa}, &err);
        assert_int_equal(kctx_isa(ctx), isa);
        kctx_free(ctx);
    }
    assert_int_equal(setenv("TK_ISA", "sse9", 1), 0);
    assert_null(kctx_make(&(struct kctx_options){0}, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    assert_string_equal(err.msg, "TK_ISA is \"sse9\", expected auto, plain, avx2 or avx512");
    unsetenv("TK_ISA");
    ctx = kctx_make(&(struct kctx_options){0}, &err);
    assert_non_null(ctx);
    assert_int_not_equal(kctx_isa(ctx), KCTX_ISA_AUTO);
    kctx_free(ctx);
}

static void test_reserve_that_cannot_be_met(void **state)
{
    struct err err = {0};
    struct kctx *ctx = make_ctx(KCTX_ISA_PLAIN, 1, 100);

    (void)state;
    assert_int_equal(kctx_reserve(ctx, SIZE_MAX, &err), -1);
    assert_int_equal(err.kind, ERR_FATAL);
    assert_int_equal(kctx_reserve(ctx, 50, &err), 0);
    struct scratch s = scratch_open(ctx);
    assert_non_null(scratch_floats(&s, 25));
    kctx_free(ctx);
}

static void test_scratch_pieces_are_apart_and_aligned(void **state)
{
    struct scratch count = {.counting = true};

    (void)state;
    for (size_t n = 0; n < 40; n++)
        assert_null(scratch_floats(&count, n));
    struct kctx *ctx = make_ctx(KCTX_ISA_PLAIN, 1, count.used_bytes);
    struct scratch s = scratch_open(ctx);
    char *end = NULL;
    for (size_t n = 0; n < 40; n++) {
        char *p = (char *)scratch_floats(&s, n);
        assert_int_equal((uintptr_t)p % 64, 0);
        assert_true(!end || p >= end);
        memset(p, 1, n * sizeof(float));
        end = p + n * sizeof(float);
    }
    kctx_free(ctx);
}

static void test_too_little_scratch_aborts(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        struct scratch s = scratch_open(make_ctx(KCTX_ISA_PLAIN, 1, 64));
        void *p = scratch_floats(&s, 17);
        _exit(p ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

enum { UNITS = 1000 };

struct units {
    atomic_int done[UNITS];
};

static void do_units(void *arg, int begin, int end)
{
    struct units *u = arg;
    for (int i = begin; i < end; i++)
        atomic_fetch_add(&u->done[i], 1);
}

static void test_every_unit_once(void **state)
{
    static const int counts[] = {0, 1, 2, 3, 7, 8, 100, UNITS};

    (void)state;
    for (int threads = 1; threads <= 9; threads += 2) {
        struct kctx *ctx = make_ctx(KCTX_ISA_PLAIN, threads, 0);
        struct units u = {0};
        int rounds = 0;
        int want[UNITS] = {0};
        for (size_t k = 0; k < ARRAY_LEN(counts) * 40; k++, rounds++) {
            int n = counts[k % ARRAY_LEN(counts)];
            kctx_run(ctx, n, do_units, &u);
            for (int i = 0; i < UNITS; i++) {
                want[i] += i < n;
                assert_int_equal(u.done[i], want[i]);
            }
            if (rounds % 100 == 99)
                usleep(2000); /* long enough for the workers to fall asleep */
        }
        kctx_free(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_environment_chooses_unless_told),
        cmocka_unit_test(test_reserve_that_cannot_be_met),
        cmocka_unit_test(test_scratch_pieces_are_apart_and_aligned),
        cmocka_unit_test(test_too_little_scratch_aborts),
        cmocka_unit_test(test_every_unit_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
