/* test_tokenize.c - `trainer tokenize`: documents in, shards out; what its command line must say. */
#include "test.h"

#include "common/fsutil.h"
#include "tools/tools.h"
#include "trainer/data/tokens.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/text/"

struct fixture {
    char folder[PATH_MAX];
    char file[PATH_MAX + 8], output[PATH_MAX + 8];
    char *said;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err;

    snprintf(f->folder, sizeof(f->folder), "/tmp/test_tokenize.XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->file, sizeof(f->file), "%s/text", f->folder);
    snprintf(f->output, sizeof(f->output), "%s/out", f->folder);
    *state = f;
    return fs_write_atomic(f->file, "the the<|endoftext|>a\xff", 22, &err);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    free(f->said);
    free(f);
    return rc;
}

static int tokenize(struct fixture *f, int argc, char *const *argv, struct err *err)
{
    size_t len;
    const struct command *c = &command_tokenize;

    free(f->said);
    FILE *out = open_memstream(&f->said, &len);
    int rc = c->main(c, argc, argv, out, err);
    fclose(out);
    return rc;
}

static size_t read_tokens(const struct fixture *f, uint16_t *out, size_t most)
{
    cleanup_buf struct buf b = BUF_INIT(1 << 20);
    char path[PATH_MAX + 32];
    int64_t count;
    struct err err;

    snprintf(path, sizeof(path), "%s_000000.bin", f->output);
    assert_int_equal(fs_read(path, &b, &err), 0);
    assert_int_equal(tokens_shard_parse(path, b.data, b.len, b.len, &count, &err), 0);
    assert_true((size_t)count <= most);
    memcpy(out, b.data + TOKENS_SHARD_HEADER, (size_t)count * 2);
    return (size_t)count;
}

static void two_documents(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {f->file,
                          f->file,
                          "--output",
                          f->output,
                          "--vocab=" GOLDEN "vocab.json",
                          "--merges",
                          GOLDEN "merges.txt"};
    uint16_t token[256];
    struct err err;

    assert_int_equal(tokenize(f, 7, argv, &err), 0);
    size_t n = read_tokens(f, token, 256);
    assert_true(n > 4 && n % 2 == 0);
    assert_int_equal(token[0], 1200);
    assert_memory_equal(token, token + n / 2, n);
    char want[64];
    snprintf(want, sizeof(want), "2 files, 44 bytes: %zu tokens of 1201 in 1 shard, the last ", n);
    assert_int_equal(strncmp(f->said, want, strlen(want)), 0);
}

/* A mark in the text ends a document, and two tokens of it are left behind the last. */
static void marks_are_documents(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {"--marks",           f->file,    "--output",         f->output, "--vocab",
                          GOLDEN "vocab.json", "--merges", GOLDEN "merges.txt"};
    uint16_t token[64];
    struct err err;

    assert_int_equal(tokenize(f, 8, argv, &err), 0);
    size_t n = read_tokens(f, token, 64);
    assert_int_equal(token[0], 1200);
    assert_int_equal(token[n - 3], 1200);
}

static void bytes_are_tokens(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {f->file, "--bytes", "--output", f->output};
    uint16_t token[64];
    struct err err;

    assert_int_equal(tokenize(f, 4, argv, &err), 0);
    assert_int_equal(read_tokens(f, token, 64), 22);
    assert_true(token[0] == 't' && token[21] == 0xff);
    assert_int_equal(tokenize(f, 4, argv, &err), -1);
    assert_non_null(strstr(err.msg, "is there already"));
}

static void expect_refusal(struct fixture *f, int argc, char *const *argv, const char *want)
{
    struct err err = {0};

    assert_int_equal(tokenize(f, argc, argv, &err), -1);
    if (!strstr(err.msg, want))
        fail_msg("\"%s\", expected \"%s\"", err.msg, want);
}

static void a_byte_order_mark_is_no_text(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {f->file, "--bytes", "--output", f->output};
    uint16_t token[64];
    struct err err;

    assert_int_equal(fs_write_atomic(f->file, "\xef\xbb\xbfto \xef\xbb\xbf", 9, &err), 0);
    assert_int_equal(tokenize(f, 4, argv, &err), 0);
    assert_int_equal(read_tokens(f, token, 64), 6);
    assert_true(token[0] == 't' && token[3] == 0xef); /* in the text it is some of it */
    assert_int_equal(fs_write_atomic(f->file, "\xfe\xff\0t\0o", 6, &err), 0);
    expect_refusal(f, 4, (char *const[]){f->file, "--bytes", "--output", "/nonexistent/out"},
                   "text: UTF-16 by its first two bytes, expected UTF-8");
}

static void command_lines_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    char empty[PATH_MAX + 16];
    struct err err;

    expect_refusal(f, 0, NULL, "no file: expected FILE...");
    expect_refusal(f, 1, (char *const[]){f->file}, "--output: is required");
    expect_refusal(f, 3, (char *const[]){f->file, "--output", f->output},
                   "expected --vocab with --merges, or --bytes");
    expect_refusal(f, 6, (char *const[]){f->file, "--output", f->output, "--bytes", "--vocab", "x"},
                   "or --bytes alone");
    expect_refusal(f, 3, (char *const[]){f->file, "--shard_tokens", "0"},
                   "--shard_tokens: expected an integer 1..");
    expect_refusal(f, 1, (char *const[]){"-x"}, "\"-x\": expected an option");
    expect_refusal(f, 4, (char *const[]){"/nonexistent", "--bytes", "--output", f->output}, "/nonexistent");
    snprintf(empty, sizeof(empty), "%s/empty", f->folder);
    assert_int_equal(fs_write_atomic(empty, "", 0, &err), 0);
    expect_refusal(f, 4, (char *const[]){empty, "--bytes", "--output", f->output}, "empty: no token in it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_documents, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_are_documents, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_are_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(a_byte_order_mark_is_no_text, setup, teardown),
        cmocka_unit_test_setup_teardown(command_lines_that_cannot_be, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
