/* test_llmc.c - llm.c's files of weights: read back what is written, and hostile headers. */
#include "test.h"

#include "common/fsutil.h"
#include "trainer/state/weights/llmc.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/weights/"

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

static void the_golden_file_and_back(void **state)
{
    (void)state;
    static const char *const files[] = {GOLDEN "llmc-f32.bin", GOLDEN "llmc-bf16.bin"};

    for (int i = 0; i < 2; i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf file = BUF_INIT(1 << 20);
        cleanup_buf struct buf out = BUF_INIT(1 << 20);
        const struct pt_sink sink = {to_buf, &out};
        const size_t bytes = i ? 2 : 4;
        struct llmc_header h;
        struct tensor_list list;
        struct err err;
        assert_int_equal(fs_read(files[i], &file, &err), 0);
        if (llmc_parse(file.data, file.len, &a, &h, &list, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(h.version, i ? LLMC_BF16 : LLMC_F32);
        assert_true(h.vocab == 11 && h.padded_vocab == 16 && h.positions == 6 && h.layers == 2 &&
                    h.heads == 2 && h.width == 8);
        assert_int_equal(list.len, 4 + 12 * 2);
        assert_string_equal(list.row[3].name, "h.1.ln_1.weight");
        assert_int_equal(llmc_write(&h, &list, &sink, &err), 0);
        /* Less the padding: five rows. */
        assert_int_equal(out.len, file.len - 5 * 8 * bytes);
        const size_t wte = LLMC_HEADER + 11 * 8 * bytes;
        assert_memory_equal(out.data, file.data, 28);
        assert_int_equal(out.data[28], 11);
        assert_memory_equal(out.data + 32, file.data + 32, wte - 32);
        assert_memory_equal(out.data + wte, file.data + wte + 5 * 8 * bytes, out.len - wte);
    }
}

static void set(char *header, int field, int32_t v)
{
    memcpy(header + 4 * field, &v, sizeof(v));
}

static void hostile_headers(void **state)
{
    (void)state;
    static const struct {
        int field;
        int32_t value;
        const char *want;
    } cases[] = {
        {0, 20240520, "magic: 20240520, expected 20240326"},
        {1, 4, "version: 4, expected 3 (f32) or 5 (bf16)"},
        {1, -1, "version: -1, expected 1..5"},
        {2, 0, "positions: 0, expected 1..16777216"},
        {3, INT32_MIN, "vocabulary: -2147483648, expected 1.."},
        {4, 1025, "layers: 1025, expected 1..1024"},
        {4, 1024, "size: 8768 bytes, expected"},
        {5, 3, "heads: 3, expected a divisor of the width (8)"},
        {6, 1 << 24, "expected"},
        {7, 10, "padded vocabulary: 10, expected at least 11"},
        {7, 1 << 24, "size: 8768 bytes, expected 536"},
    };
    cleanup_buf struct buf file = BUF_INIT(1 << 20);
    struct err err;

    assert_int_equal(fs_read(GOLDEN "llmc-f32.bin", &file, &err), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cleanup_arena struct arena a = {0};
        struct llmc_header h;
        struct tensor_list list;
        char saved[LLMC_HEADER];
        memcpy(saved, file.data, LLMC_HEADER);
        set(file.data, cases[i].field, cases[i].value);
        assert_int_equal(llmc_parse(file.data, file.len, &a, &h, &list, &err), -1);
        if (!strstr(err.msg, cases[i].want))
            fail_msg("\"%s\", expected \"%s\"", err.msg, cases[i].want);
        memcpy(file.data, saved, LLMC_HEADER);
        assert_int_equal(llmc_parse(file.data, file.len - 1, &a, &h, &list, &err), -1);
        assert_non_null(strstr(err.msg, "size: 8767 bytes, expected 8768"));
    }
}

static void lists_that_do_not_fit(void **state)
{
    (void)state;
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf file = BUF_INIT(1 << 20);
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    const struct pt_sink sink = {to_buf, &out};
    struct llmc_header h;
    struct tensor_list list;
    struct err err;

    assert_int_equal(fs_read(GOLDEN "llmc-f32.bin", &file, &err), 0);
    assert_int_equal(llmc_parse(file.data, file.len, &a, &h, &list, &err), 0);
    list.len--;
    assert_int_equal(llmc_write(&h, &list, &sink, &err), -1);
    assert_non_null(strstr(err.msg, "ln_f.bias: is missing"));
    list.len++;
    h.version = LLMC_BF16;
    assert_int_equal(llmc_write(&h, &list, &sink, &err), -1);
    assert_non_null(strstr(err.msg, "wte.weight: another type or shape"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_file_and_back),
        cmocka_unit_test(hostile_headers),
        cmocka_unit_test(lists_that_do_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
