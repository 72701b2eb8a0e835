/* test_matmul.c - how a context gets cuBLAS: missing, switched off, printing what it chooses; and what becomes of epilogues
 * that it lacks or has wrong. On the emulated GPU. */
#include "test.h"

#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "kernels/device.h"
#include "kernels/linear.h"

#include <cublasLt.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void a_missing_cublas_is_an_error_that_names_it(void **state)
{
    struct err err;

    (void)state;
    fake_cublas_missing(true);
    for (int p = PRECISION_F32; p <= PRECISION_BF16; p++) {
        assert_null(cuda_make(0, (enum precision)p, ELEMENT_F32, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, "libcublasLt.so.13"));
    }
    assert_null(cuda_make(0, PRECISION_F32, ELEMENT_BF16, &err));
    assert_int_equal(fake_cudart_pieces(), 0);
    fake_cublas_missing(false);
}

static void without_it_only_when_asked(void **state)
{
    struct err err;

    (void)state;
    fake_cublas_missing(true);
    setenv("TK_CUBLAS", "off", 1);
    struct kctx *ctx = cuda_make(0, PRECISION_F32, ELEMENT_F32, &err);
    assert_non_null(ctx);
    kctx_free(ctx);
    assert_null(cuda_make(0, PRECISION_TF32, ELEMENT_F32, &err));
    assert_non_null(strstr(err.msg, "--precision"));
    unsetenv("TK_CUBLAS");
    fake_cublas_missing(false);
}

/* stderr goes to a file between the two. */
struct heard {
    int saved, fd;
};

static struct heard hear(void)
{
    char path[] = "/tmp/matmul-XXXXXX";
    struct heard h = {dup(STDERR_FILENO), mkstemp(path)};

    assert_true(h.saved >= 0 && h.fd >= 0 && dup2(h.fd, STDERR_FILENO) >= 0);
    unlink(path);
    return h;
}

static void heard(const struct heard *h, char *text, size_t size)
{
    assert_true(dup2(h->saved, STDERR_FILENO) >= 0);
    close(h->saved);
    ssize_t len = pread(h->fd, text, size - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    close(h->fd);
}

/* What `rows` linear layers, one behind the other, print on stderr. */
static void print_products(const char *mode, enum element element, const int *rows, int n, char *text,
                           size_t size)
{
    struct err err;
    const struct heard h = hear();

    setenv("TK_CUBLAS", mode, 1);
    struct kctx *ctx = cuda_make(0, PRECISION_F32, element, &err);
    assert_non_null(ctx);
    char *memory = device_alloc(ctx, 1 << 16, &err);
    assert_non_null(memory);
    for (int i = 0; i < n; i++) {
        const struct linear_shape s = {.rows = rows[i], .in = 16, .out = 8};
        linear_forward(ctx, &s, memory, memory + 8192, memory + 16384, (const void *)(memory + 32768), false);
    }
    assert_int_equal(device_sync(ctx, &err), 0);
    device_free(ctx, memory);
    kctx_free(ctx);
    unsetenv("TK_CUBLAS");
    heard(&h, text, size);
}

static void each_new_product_is_a_line(void **state)
{
    char text[2000];

    (void)state;
    print_products("print", ELEMENT_BF16, (const int[]){4, 4, 2}, 3, text, sizeof(text));
    assert_string_equal(text,
                        "cuBLAS 8 x 4 x 16, bf16 to bf16, A transposed, bias: algorithm 66, tensor cores\n"
                        "cuBLAS 8 x 2 x 16, bf16 to bf16, A transposed, bias: algorithm 66, tensor cores\n");
    print_products("on", ELEMENT_BF16, (const int[]){4}, 1, text, sizeof(text));
    assert_string_equal(text, "");
    print_products("off", ELEMENT_F32, (const int[]){4}, 1, text, sizeof(text));
    assert_string_equal(text, "");
}

/* One call of an operation with an epilogue, on numbers i / 16 - 1 .. that all kinds of elements have. */
struct call {
    int epilogue;
    const char *name;
    void (*run)(struct kctx *ctx, float *x);
    unsigned epilogues; /* of all kinds in this call */
};

enum { ROWS = 6, IN = 16, OUT = 8, FLOATS = 2048, ROOM = 1920 /* from there on undefined */ };

static const struct linear_shape SHAPE = {ROWS, IN, OUT};

static void call_bias_gradient(struct kctx *ctx, float *x)
{
    linear_backward(ctx, &SHAPE, NULL, x, x + 512, x + 1024, NULL, x + 1280, x + 1536);
}

static void call_gelu(struct kctx *ctx, float *x)
{
    linear_gelu_forward(ctx, &SHAPE, x, x + 512, x + 1024, x + 1280, x + 1536);
}

static void call_gelu_gradient(struct kctx *ctx, float *x)
{
    gelu_linear_backward(ctx, &SHAPE, x, x + ROOM, x + 256, x + 512, x + 640, x + 768, x + 1024, x + 1280);
}

/* Its input is not read again. */
static void call_gelu_gradient_in_place(struct kctx *ctx, float *x)
{
    device_copy(ctx, x, x + 768, sizeof(float) * ROWS * IN);
    gelu_linear_backward(ctx, &SHAPE, x, x + ROOM, x + 256, x + 512, x + 640, x, x + 1024, x + 1280);
}

static const struct call CALLS[] = {
    {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "GELU", call_gelu, 1},
    {CUBLASLT_EPILOGUE_DGELU, "slope of GELU", call_gelu_gradient, 2},
    {CUBLASLT_EPILOGUE_DGELU, "slope of GELU", call_gelu_gradient_in_place, 2},
    {CUBLASLT_EPILOGUE_BGRADB, "sums of columns", call_bias_gradient, 1},
};

/* The call's memory afterwards, and how many kernels of ours it took the second time. */
static unsigned run_call(const struct call *c, struct kctx *ctx, float *x)
{
    struct err err;
    float *memory = device_alloc(ctx, FLOATS * sizeof(float), &err);

    assert_non_null(memory);
    for (int i = 0; i < FLOATS; i++)
        x[i] = (float)(i * 37 % 31) / 16 - 1;
    device_put(ctx, memory, x, FLOATS * sizeof(float));
    c->run(ctx, memory); /* asks */
    assert_int_equal(device_sync(ctx, &err), 0);
    const unsigned long before = emulate_launches();
    c->run(ctx, memory);
    assert_int_equal(device_get(ctx, x, memory, FLOATS * sizeof(float), &err), 0);
    device_free(ctx, memory);
    return (unsigned)(emulate_launches() - before);
}

enum fault { NONE, LACKING, WRONG, LOSES_NAN };

/* want NULL: of bf16, what it makes of floats taken for pairs of them is not looked at. */
static void check_call(const struct call *c, const float *want, enum fault fault)
{
    struct err err;
    float got[FLOATS];
    char text[2000], apart[80];
    const struct heard h = hear();

    setenv("TK_CUBLAS", "print", 1);
    struct kctx *ctx = cuda_make(0, PRECISION_F32, want ? ELEMENT_F32 : ELEMENT_BF16, &err);
    assert_non_null(ctx);
    assert_int_equal(kctx_reserve(ctx, linear_workspace_bytes(&SHAPE), &err), 0);
    fake_cublas_lacks(fault == LACKING ? c->epilogue : 0);
    fake_cublas_errs(fault == WRONG ? c->epilogue : 0);
    fake_cublas_loses_nan(fault == LOSES_NAN);
    unsigned kernels = run_call(c, ctx, got);
    fake_cublas_lacks(0);
    fake_cublas_errs(0);
    fake_cublas_loses_nan(false);
    kctx_free(ctx);
    unsetenv("TK_CUBLAS");
    heard(&h, text, sizeof(text));
    snprintf(apart, sizeof(apart), ", %s apart\n", c->name);
    assert_non_null(strstr(text, c->name));
    assert_int_equal(kernels, fault == LOSES_NAN ? c->epilogues : fault != NONE);
    assert_int_equal(strstr(text, apart) != NULL, fault != NONE);
    for (int i = 0; i < ROOM && want; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * (1 + fabsf(want[i]))))
            fail_msg("%s, fault %d: element %d is %.9g, the CPU has %.9g", c->name, (int)fault, i,
                     (double)got[i], (double)want[i]);
}

/* Also of operands nothing is left behind that an epilogue was asked with. */
static void an_epilogue_that_cannot_be_used_is_a_kernel_of_its_own(void **state)
{
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        float want[FLOATS];
        cleanup_kctx struct kctx *cpu = kctx_make(
            &(struct kctx_options){.threads = 1, .workspace_bytes = linear_workspace_bytes(&SHAPE)}, &err);
        assert_non_null(cpu);
        run_call(&CALLS[i], cpu, want);
        for (int fault = NONE; fault <= LOSES_NAN; fault++) {
            check_call(&CALLS[i], want, (enum fault)fault);
            check_call(&CALLS[i], NULL, (enum fault)fault);
        }
    }
}

/* The streams wait for each other, which is made to fail. */
static bool uses_two_streams(const struct linear_shape *s)
{
    struct err err;
    cleanup_kctx struct kctx *ctx = cuda_make(0, PRECISION_F32, ELEMENT_F32, &err);
    const size_t in = (size_t)s->rows * (size_t)s->in, out = (size_t)s->rows * (size_t)s->out;
    const size_t weights = (size_t)s->in * (size_t)s->out;

    assert_non_null(ctx);
    float *x = device_alloc(ctx, 2 * (in + out + weights) * sizeof(float), &err);
    assert_non_null(x);
    fake_cudart_fail("cudaStreamWaitEvent", 0);
    linear_backward(ctx, s, x, x + in, NULL, x + in + weights, NULL, x + in + weights + out,
                    x + in + weights + out + in);
    const bool failed = device_sync(ctx, &err) != 0;
    fake_cudart_fail("", 0);
    device_free(ctx, x);
    return failed;
}

/* The emulated GPU has four multiprocessors. */
static void gradients_of_small_layers_are_made_beside_each_other(void **state)
{
    (void)state;
    assert_true(uses_two_streams(&(struct linear_shape){128, 128, 128}));
    assert_true(uses_two_streams(&(struct linear_shape){1, 256, 1}));
    assert_false(uses_two_streams(&(struct linear_shape){1, 257, 1}));
    assert_false(uses_two_streams(&(struct linear_shape){1, 1, 513}));
    assert_false(uses_two_streams(&(struct linear_shape){513, 1, 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_cublas_is_an_error_that_names_it),
        cmocka_unit_test(without_it_only_when_asked),
        cmocka_unit_test(each_new_product_is_a_line),
        cmocka_unit_test(an_epilogue_that_cannot_be_used_is_a_kernel_of_its_own),
        cmocka_unit_test(gradients_of_small_layers_are_made_beside_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
