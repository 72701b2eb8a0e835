/* test_matmul.c - how a context gets cuBLAS: missing, switched off, printing what it chooses; and what becomes of epilogues
 * that it lacks. On the emulated GPU. */
#include "test.h"

#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "kernels/ops.h"

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
        ctx->ops->linear_forward(ctx, &s, memory, memory + 8192, memory + 16384,
                                 (const void *)(memory + 32768), false);
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
    assert_string_equal(
        text, "cuBLAS 8 x 4 x 16, bf16 to bf16, A transposed, bias: algorithm 66, split K 3, tensor cores\n"
              "cuBLAS 8 x 2 x 16, bf16 to bf16, A transposed, bias: algorithm 66, split K 3, tensor cores\n");
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
};

enum { ROWS = 6, IN = 16, OUT = 8, FLOATS = 2048, ROOM = 1920 /* from there on undefined */ };

static const struct linear_shape SHAPE = {ROWS, IN, OUT};

static void call_bias_gradient(struct kctx *ctx, float *x)
{
    ctx->ops->linear_backward(ctx, &SHAPE, NULL, x, x + 512, x + 1024, NULL, x + 1280, x + 1536);
}

static void call_gelu(struct kctx *ctx, float *x)
{
    ctx->ops->linear_gelu_forward(ctx, &SHAPE, x, x + 512, x + 1024, x + 1280, x + 1536);
}

static void call_gelu_gradient(struct kctx *ctx, float *x)
{
    ctx->ops->gelu_linear_backward(ctx, &SHAPE, x, x + ROOM, x + 256, x + 512, x + 640, x + 768, x + 1024,
                                   x + 1280);
}

/* Its input is not read again. */
static void call_gelu_gradient_in_place(struct kctx *ctx, float *x)
{
    device_copy(ctx, x, x + 768, sizeof(float) * ROWS * IN);
    ctx->ops->gelu_linear_backward(ctx, &SHAPE, x, x + ROOM, x + 256, x + 512, x + 640, x, x + 1024,
                                   x + 1280);
}

static const struct call CALLS[] = {
    {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, "GELU", call_gelu},
    {CUBLASLT_EPILOGUE_DGELU, "slope of GELU", call_gelu_gradient},
    {CUBLASLT_EPILOGUE_DGELU, "slope of GELU", call_gelu_gradient_in_place},
    {CUBLASLT_EPILOGUE_BGRADB, "sums of columns", call_bias_gradient},
};

/* The call's memory afterwards, and how many kernels of ours it took. */
static unsigned run_call(const struct call *c, struct kctx *ctx, float *x)
{
    struct err err;
    float *memory = device_alloc(ctx, FLOATS * sizeof(float), &err);

    assert_non_null(memory);
    for (int i = 0; i < FLOATS; i++)
        x[i] = (float)(i * 37 % 31) / 16 - 1;
    device_put(ctx, memory, x, FLOATS * sizeof(float));
    const unsigned long before = emulate_launches();
    c->run(ctx, memory);
    assert_int_equal(device_get(ctx, x, memory, FLOATS * sizeof(float), &err), 0);
    device_free(ctx, memory);
    return (unsigned)(emulate_launches() - before);
}

/* want NULL: of bf16, what it makes of floats taken for pairs of them is not looked at. */
static void check_call(const struct call *c, const float *want, bool lacking)
{
    struct err err;
    float got[FLOATS];
    char text[2000], apart[80];
    const struct heard h = hear();

    setenv("TK_CUBLAS", "print", 1);
    struct kctx *ctx = cuda_make(0, PRECISION_TF32, want ? ELEMENT_F32 : ELEMENT_BF16, &err);
    assert_non_null(ctx);
    assert_int_equal(kctx_reserve(ctx, linear_workspace_bytes(&SHAPE), &err), 0);
    fake_cublas_lacks(lacking ? c->epilogue : 0);
    unsigned kernels = run_call(c, ctx, got);
    fake_cublas_lacks(0);
    kctx_free(ctx);
    unsetenv("TK_CUBLAS");
    heard(&h, text, sizeof(text));
    snprintf(apart, sizeof(apart), ", %s apart (no algorithm)\n", c->name);
    assert_non_null(strstr(text, c->name));
    assert_int_equal(kernels, lacking);
    assert_int_equal(strstr(text, apart) != NULL, lacking);
    for (int i = 0; i < ROOM && want; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5F * (1 + fabsf(want[i]))))
            fail_msg("%s%s: element %d is %.9g, the CPU has %.9g", c->name, lacking ? " apart" : "", i,
                     (double)got[i], (double)want[i]);
}

static void an_epilogue_that_is_lacking_is_a_kernel_of_its_own(void **state)
{
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        float want[FLOATS];
        cleanup_kctx struct kctx *cpu = kctx_make(
            &(struct kctx_options){.threads = 1, .workspace_bytes = linear_workspace_bytes(&SHAPE)}, &err);
        assert_non_null(cpu);
        run_call(&CALLS[i], cpu, want);
        for (int lacking = 0; lacking < 2; lacking++) {
            check_call(&CALLS[i], want, lacking);
            check_call(&CALLS[i], NULL, lacking);
        }
    }
}

enum { PLACES = 4096 };

/* A context whose cuBLAS prints, and memory of PLACES floats with the numbers of a call. */
struct session {
    struct kctx *ctx;
    float *x, start[PLACES];
    struct heard heard;
};

static struct session open_session_of(const char *mode, enum element element)
{
    struct err err;
    struct session s = {.heard = hear()};

    setenv("TK_CUBLAS", mode, 1);
    s.ctx = cuda_make(0, PRECISION_TF32, element, &err);
    assert_non_null(s.ctx);
    assert_int_equal(kctx_reserve(s.ctx, linear_workspace_bytes(&SHAPE), &err), 0);
    s.x = device_alloc(s.ctx, sizeof(s.start), &err);
    assert_non_null(s.x);
    for (int i = 0; i < PLACES; i++)
        s.start[i] = (float)(i * 37 % 31) / 16 - 1;
    device_put(s.ctx, s.x, s.start, sizeof(s.start));
    return s;
}

static struct session open_session(const char *mode)
{
    return open_session_of(mode, ELEMENT_F32);
}

static void close_session(struct session *s, char *text, size_t size)
{
    device_free(s->ctx, s->x);
    kctx_free(s->ctx);
    unsetenv("TK_CUBLAS");
    heard(&s->heard, text, size);
}

/* Of numbers that bf16 has, and its upper half of f32. */
static void put_bf16(const struct session *s, uint16_t *at, const float *x, int n)
{
    uint16_t half[IN * OUT];

    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        half[i] = (uint16_t)(bits >> 16);
    }
    device_put(s->ctx, at, half, (size_t)n * sizeof(*half));
}

static float get_bf16(const struct session *s, const uint16_t *at)
{
    struct err err;
    uint16_t half;
    float x;

    assert_int_equal(device_get(s->ctx, &half, at, sizeof(half), &err), 0);
    const uint32_t bits = (uint32_t)half << 16;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static void near_bf16(float got, float want, const char *what, int i)
{
    if (!(fabsf(got - want) <= 0x1.02p-8F * fabsf(want) + 1e-6F))
        fail_msg("%s %d is %.9g, expected %.9g", what, i, (double)got, (double)want);
}

/* What the two epilogues write is within one rounding of the definition, element by element. */
static void a_gelu_in_bf16_is_rounded_once(void **state)
{
    enum { BEFORE = 128, INPUT = 256, WEIGHT = 384, BIAS = 512, DWEIGHT = 1024, DBIAS = 2048, DIN = 640 };
    char text[4000];
    struct session s = open_session_of("print", ELEMENT_BF16);
    uint16_t *x = (uint16_t *)s.x;
    const float *in = s.start, *weight = s.start + 128, *bias = s.start + 384;

    (void)state;
    put_bf16(&s, x + INPUT, in, ROWS * IN);
    put_bf16(&s, x + WEIGHT, weight, IN * OUT);
    put_bf16(&s, x + BIAS, bias, OUT);
    s.ctx->ops->linear_gelu_forward(s.ctx, &SHAPE, x, x + BEFORE, x + INPUT, x + WEIGHT, x + BIAS);
    for (int i = 0; i < ROWS * OUT; i++) {
        float sum = bias[i % OUT];
        for (int k = 0; k < IN; k++)
            sum += in[i / OUT * IN + k] * weight[i % OUT * IN + k];
        near_bf16(get_bf16(&s, x + BEFORE + i), sum, "before", i);
        near_bf16(get_bf16(&s, x + i),
                  0.5F * sum * (1 + tanhf(0.797884561F * (sum + 0.044715F * sum * sum * sum))), "output", i);
    }
    put_bf16(&s, x, s.start + 600, ROWS * OUT); /* dout; `before` is what `in` was */
    s.ctx->ops->gelu_linear_backward(s.ctx, &SHAPE, x + DIN, x + 768, s.x + DWEIGHT, s.x + DBIAS, x,
                                     x + INPUT, x + INPUT, x + WEIGHT);
    for (int i = 0; i < ROWS * IN; i++) {
        const float b = in[i], gate = 0.5F * (1 + tanhf(0.797884561F * (b + 0.044715F * b * b * b)));
        float sum = 0;
        for (int j = 0; j < OUT; j++)
            sum += s.start[600 + i / IN * OUT + j] * weight[j * IN + i % IN];
        near_bf16(get_bf16(&s, x + DIN + i),
                  sum * (gate + 2 * b * gate * (1 - gate) * 0.797884561F * (1 + 0.134145F * b * b)), "din",
                  i);
    }
    close_session(&s, text, sizeof(text));
    assert_null(strstr(text, "apart"));
}

/* Where the operands of a call are, in floats; `in` and `weight` are at 2048 and 3072. */
struct places {
    int out, before, bias; /* -1: no GELU, but a ReLU */
};

/* How many kernels of ours the layer takes. Its outputs are what the definition says. */
static unsigned forward_at(struct session *s, struct places at)
{
    struct err err;
    float got[PLACES];
    const unsigned long launches = emulate_launches();
    const bool gelu = at.before >= 0;

    if (gelu)
        s->ctx->ops->linear_gelu_forward(s->ctx, &SHAPE, s->x + at.out, s->x + at.before, s->x + 2048,
                                         s->x + 3072, s->x + at.bias);
    else
        s->ctx->ops->linear_forward(s->ctx, &SHAPE, s->x + at.out, s->x + 2048, s->x + 3072, s->x + at.bias,
                                    true);
    assert_int_equal(device_get(s->ctx, got, s->x, sizeof(got), &err), 0);
    for (int i = 0; i < ROWS * OUT; i++) {
        float sum = s->start[at.bias + i % OUT];
        for (int k = 0; k < IN; k++)
            sum += s->start[2048 + i / OUT * IN + k] * s->start[3072 + i % OUT * IN + k];
        const float y = gelu ? 0.5F * sum * (1 + tanhf(0.797884561F * (sum + 0.044715F * sum * sum * sum)))
                             : fmaxf(sum, 0);
        if (!(fabsf(got[at.out + i] - y) <= 1e-5F * (1 + fabsf(y))))
            fail_msg("output %d is %.9g, expected %.9g", i, (double)got[at.out + i], (double)y);
        if (gelu && !(fabsf(got[at.before + i] - sum) <= 1e-5F * (1 + fabsf(sum))))
            fail_msg("before %d is %.9g, expected %.9g", i, (double)got[at.before + i], (double)sum);
    }
    return (unsigned)(emulate_launches() - launches);
}

static unsigned bias_gradient_at(struct session *s, int at)
{
    struct err err;
    float got[OUT];
    const unsigned long launches = emulate_launches();

    s->ctx->ops->linear_backward(s->ctx, &SHAPE, NULL, s->x, s->x + at, s->x + 2048, NULL, s->x + 3072,
                                 s->x + 3584);
    assert_int_equal(device_get(s->ctx, got, s->x + at, sizeof(got), &err), 0);
    for (int j = 0; j < OUT; j++) {
        float sum = 0;
        for (int i = 0; i < ROWS; i++)
            sum += s->start[2048 + i * OUT + j];
        assert_true(fabsf(got[j] - sum) <= 1e-5F);
    }
    return (unsigned)(emulate_launches() - launches);
}

/* Each pair once shared a plan. */
static void each_alignment_is_a_kind_of_its_own(void **state)
{
    char text[4000];
    struct session s = open_session("print");

    (void)state;
    assert_int_equal(forward_at(&s, (struct places){2, 512, 1024}), 0);
    assert_int_equal(forward_at(&s, (struct places){0, 514, 1024}), 1);
    close_session(&s, text, sizeof(text));
    assert_non_null(strstr(text, ", GELU apart (alignment)\n"));
    s = open_session("print");
    assert_int_equal(forward_at(&s, (struct places){1, 512, 1024}), 0);
    assert_int_equal(forward_at(&s, (struct places){1, 512, 1025}), 2);
    close_session(&s, text, sizeof(text));
}

/* At less than 16 bytes cuBLAS's epilogues could fault. */
static void a_bias_anywhere_is_added(void **state)
{
    char text[4000];
    struct session s = open_session("print");

    (void)state;
    for (int at = 1024; at < 1032; at++) {
        assert_int_equal(forward_at(&s, (struct places){0, -1, at}), at % 4 ? 2 : 0);
        assert_int_equal(bias_gradient_at(&s, at + 512), at % 4 != 0);
    }
    close_session(&s, text, sizeof(text));
    assert_non_null(strstr(text, ", sums of columns apart (alignment)\n"));
}

static void what_cublas_refuses_runs_apart_from_its_extra(void **state)
{
    const char apart[] = "cuBLAS 8 x 6 x 16, f32 to f32, A transposed, bias, GELU: ";
    const struct places at = {0, 512, 1024};
    char text[4000];
    struct session s = open_session("print");

    (void)state;
    fake_cublas_fails(CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(forward_at(&s, at), 1);
    assert_int_equal(forward_at(&s, at), 1);
    close_session(&s, text, sizeof(text));
    const char *refused = strstr(text, "refused when it was run: status 15\n");
    assert_non_null(refused);
    assert_null(strstr(refused + 1, "refused when it was run"));
    assert_non_null(strstr(refused, apart));
    assert_non_null(strstr(refused, ", GELU apart (refused)\n"));
}

static void what_cublas_refuses_is_told_and_not_asked_again(void **state)
{
    const struct places at = {0, -1, 1024};
    char text[4000];
    struct err err;
    struct session s = open_session("print");

    (void)state;
    assert_int_equal(forward_at(&s, at), 0);
    fake_cublas_fails(CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(forward_at(&s, at), 1);
    assert_int_equal(forward_at(&s, at), 1);
    close_session(&s, text, sizeof(text));
    assert_non_null(strstr(text,
                           "cuBLAS 8 x 6 x 16, f32 to f32, A transposed, bias, ReLU: refused when it was "
                           "run: status 15\n"));
    s = open_session("on");
    fake_cublas_fails(CUBLAS_STATUS_EXECUTION_FAILED);
    s.ctx->ops->linear_forward(s.ctx, &SHAPE, s.x, s.x + 2048, s.x + 3072, NULL, false);
    assert_int_not_equal(device_sync(s.ctx, &err), 0);
    assert_non_null(strstr(err.msg, "a product by cuBLAS"));
    close_session(&s, text, sizeof(text));
}

static void a_kind_without_room_is_asked_for_anew(void **state)
{
    const struct places at = {0, 512, 1024};
    const char line[] = "cuBLAS 8 x 6 x 16, f32 to f32, A transposed, bias, GELU: ";
    static char text[100000];
    struct session s = open_session("print");

    (void)state;
    for (int rows = 1; rows <= 512; rows++)
        s.ctx->ops->linear_forward(s.ctx, &(struct linear_shape){rows, 1, 1}, s.x, s.x + 2048, s.x + 3072,
                                   NULL, false);
    assert_int_equal(forward_at(&s, at), 0);
    assert_int_equal(forward_at(&s, at), 0);
    close_session(&s, text, sizeof(text));
    const char *first = strstr(text, line);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, line));
}

/* The streams wait for each other, which is made to fail. */
static bool uses_two_streams(const struct linear_shape *s)
{
    struct err err;
    cleanup_kctx struct kctx *ctx = cuda_make(0, PRECISION_TF32, ELEMENT_F32, &err);
    const size_t in = (size_t)s->rows * (size_t)s->in, out = (size_t)s->rows * (size_t)s->out;
    const size_t weights = (size_t)s->in * (size_t)s->out;

    assert_non_null(ctx);
    float *x = device_alloc(ctx, 2 * (in + out + weights) * sizeof(float), &err);
    assert_non_null(x);
    fake_cudart_fail("cudaStreamWaitEvent", 0);
    ctx->ops->linear_backward(ctx, s, x, x + in, NULL, x + in + weights, NULL, x + in + weights + out,
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
        cmocka_unit_test(an_epilogue_that_is_lacking_is_a_kernel_of_its_own),
        cmocka_unit_test(each_alignment_is_a_kind_of_its_own),
        cmocka_unit_test(a_bias_anywhere_is_added),
        cmocka_unit_test(what_cublas_refuses_runs_apart_from_its_extra),
        cmocka_unit_test(what_cublas_refuses_is_told_and_not_asked_again),
        cmocka_unit_test(a_kind_without_room_is_asked_for_anew),
        cmocka_unit_test(a_gelu_in_bf16_is_rounded_once),
        cmocka_unit_test(gradients_of_small_layers_are_made_beside_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
