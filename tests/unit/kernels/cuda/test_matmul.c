/* test_matmul.c - how a context gets cuBLAS: missing, switched off, printing what it chooses. On the emulated GPU. */
#include "test.h"

#include "cudart.h"
#include "kernels/cuda/cuda.h"
#include "kernels/device.h"
#include "kernels/linear.h"

#include <fcntl.h>
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

/* What `rows` linear layers, one behind the other, print on stderr. */
static void print_products(const char *mode, enum element element, const int *rows, int n, char *text,
                           size_t size)
{
    struct err err;
    char path[] = "/tmp/matmul-XXXXXX";
    int saved = dup(STDERR_FILENO), fd = mkstemp(path);

    assert_true(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
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
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    ssize_t len = pread(fd, text, size - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    close(fd);
    unlink(path);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_cublas_is_an_error_that_names_it),
        cmocka_unit_test(without_it_only_when_asked),
        cmocka_unit_test(each_new_product_is_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
