/* test_convert.c - `trainer convert`: whatever file goes in, the same comes out; what its command line must say. */
#include "test.h"

#include "common/fsutil.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/weights/"

struct fixture {
    char folder[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/test_convert.XXXXXX");
    *state = f;
    return mkdtemp(f->folder) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    free(f);
    return rc;
}

static int convert(int argc, char *const *argv, struct err *err)
{
    const struct command *c = &command_convert;

    return c->main(c, argc, argv, stdout, err);
}

/* The content of folder/name, made from `input`; more: an option. */
static void convert_to(const struct fixture *f, const char *input, const char *name, const char *more,
                       struct buf *out)
{
    char from[PATH_MAX], to[PATH_MAX];
    struct err err;

    snprintf(from, sizeof(from), "%s%s", input[0] == '/' ? "" : GOLDEN, input);
    snprintf(to, sizeof(to), "%s/%s", f->folder, name);
    char option[32];
    snprintf(option, sizeof(option), "%s", more ? more : "--heads=2");
    char *const argv[] = {from, "--output", to, "--heads=2", option};
    if (convert(5, argv, &err))
        fail_msg("%s -> %s: %s", input, name, err.msg);
    buf_clear(out);
    assert_int_equal(fs_read(to, out, &err), 0);
}

static void any_file_becomes_llmcs(void **state)
{
    const struct fixture *f = *state;
    static const char *const way[][2] = {{"a.safetensors", NULL},
                                         {"b.safetensors", "--huggingface"},
                                         {"a.pt", NULL},
                                         {"b.pt", "--huggingface"},
                                         {"a.bin", NULL}};
    static const char *const input[] = {"huggingface.safetensors", "nanogpt.pt", "llmc-f32.bin"};
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    cleanup_buf struct buf got = BUF_INIT(1 << 20);
    char between[PATH_MAX];

    convert_to(f, "llmc-f32.bin", "want.bin", NULL, &want);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 5; k++) {
            convert_to(f, input[i], way[k][0], way[k][1], &got);
            snprintf(between, sizeof(between), "%s/%s", f->folder, way[k][0]);
            convert_to(f, between, "got.bin", NULL, &got);
            assert_int_equal(got.len, want.len);
            assert_memory_equal(got.data, want.data, want.len);
        }
    }
}

static void short_numbers(void **state)
{
    const struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    cleanup_buf struct buf got = BUF_INIT(1 << 20);

    convert_to(f, "llmc-bf16.bin", "want.bin", "--dtype=bf16", &want);
    convert_to(f, "nanogpt.pt", "got.bin", "--dtype=bf16", &got);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
    convert_to(f, "nanogpt.pt", "half.safetensors", "--dtype=f16", &got);
    assert_non_null(memmem(got.data, got.len, "\"F16\"", 5));
    assert_null(memmem(got.data, got.len, "\"F32\"", 5));
}

static void expect_refusal(int argc, char *const *argv, const char *want)
{
    struct err err = {0};

    assert_int_equal(convert(argc, argv, &err), -1);
    if (!strstr(err.msg, want))
        fail_msg("\"%s\", expected \"%s\"", err.msg, want);
}

static void command_lines_that_cannot_be(void **state)
{
    (void)state;
    char pt[] = GOLDEN "nanogpt.pt";

    expect_refusal(1, (char *const[]){pt}, "expected FILE and --output FILE");
    expect_refusal(2, (char *const[]){pt, pt}, "expected one FILE");
    expect_refusal(3, (char *const[]){pt, "--output", "x.onnx"},
                   "expected a name that ends in .safetensors, .pt or .bin");
    expect_refusal(5, (char *const[]){pt, "--output", "x.bin", "--dtype", "f16"}, "a layout of its own");
    expect_refusal(5, (char *const[]){pt, "--output", "x.pt", "--dtype", "i8"},
                   "--dtype: expected f32, bf16 or f16");
    expect_refusal(3, (char *const[]){pt, "--output", "x.bin"},
                   "--heads: 0, expected a divisor of the width (8)");
    expect_refusal(5, (char *const[]){pt, "--output", "x.bin", "--heads", "3"},
                   "--heads: 3, expected a divisor");
    expect_refusal(3, (char *const[]){TK_SOURCE_DIR "/tests/golden/torch/module.pt", "--output", "x.pt"},
                   "expected wte.weight and wpe.weight of the same width");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_file_becomes_llmcs, setup, teardown),
        cmocka_unit_test_setup_teardown(short_numbers, setup, teardown),
        cmocka_unit_test(command_lines_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
