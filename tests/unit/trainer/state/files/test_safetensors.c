/* test_safetensors.c - there and back; headers that lie are refused. */
#include "common/buf.h"
#include "common/fsutil.h"
#include "test.h"
#include "trainer/state/files/safetensors.h"

#include <string.h>

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

static const float WEIGHT[6] = {1, -2, 3.5F, 0, 1e-30F, 6};
static const int64_t COUNT[1] = {77};
static const uint8_t BYTES[3] = {1, 2, 3};

static const struct tensor_row ROWS[] = {
    {"a.bytes", {.data = BYTES, .dtype = PT_U8, .dims = 1, .dim = {3}}},
    {"b.\"weight\"", {.data = WEIGHT, .dtype = PT_F32, .dims = 2, .dim = {2, 3}}},
    {"bn.num_batches_tracked", {.data = COUNT, .dtype = PT_I64, .dims = 0}},
    {"empty", {.data = NULL, .dtype = PT_F32, .dims = 2, .dim = {4, 0}}},
};

static void there_and_back(void **state)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    struct tensor_list list = {ROWS, ARRAY_LEN(ROWS)};
    struct tensor_list got;
    struct err err = {0};
    size_t found = 0;

    (void)state;
    assert_int_equal(safetensors_write(&list, &(struct pt_sink){to_buf, &file}, &err), 0);
    uint64_t header;
    memcpy(&header, file.data, sizeof(header));
    assert_int_equal(header % 8, 0);
    assert_int_equal(file.len, 8 + header + 8 + 24 + 3);
    /* The widest come first: 77, then the floats, then the bytes. */
    assert_memory_equal(file.data + 8 + header, COUNT, 8);
    assert_memory_equal(file.data + 8 + header + 8, WEIGHT, 24);
    assert_non_null(memmem(file.data, file.len, "\"__metadata__\":{\"format\":\"pt\"}", 30));
    assert_int_equal(safetensors_parse(file.data, file.len, &a, &got, &err), 0);
    assert_int_equal(got.len, ARRAY_LEN(ROWS));
    for (size_t i = 0; i < got.len; i++) {
        for (size_t j = 0; j < ARRAY_LEN(ROWS); j++) {
            const struct pt_tensor *want = &ROWS[j].tensor;
            if (strcmp(got.row[i].name, ROWS[j].name))
                continue;
            found++;
            assert_int_equal(got.row[i].tensor.dtype, want->dtype);
            assert_int_equal(got.row[i].tensor.dims, want->dims);
            assert_memory_equal(got.row[i].tensor.dim, want->dim, sizeof(want->dim));
            if (want->data)
                assert_memory_equal(got.row[i].tensor.data, want->data, (size_t)pt_tensor_bytes(want));
        }
    }
    assert_int_equal(found, ARRAY_LEN(ROWS));
    for (size_t len = 0; len < file.len; len++) {
        cleanup_free char *cut = malloc(len + 1);
        memcpy(cut, file.data, len);
        assert_int_equal(safetensors_parse(cut, len, &a, &got, &err), -1);
    }
}

/* A matrix that lies transposed: 35 columns are written some at a time. */
static void turned_matrices_are_written_as_their_transpose(void **state)
{
    enum { IN = 35, OUT = 3 };
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    float memory[OUT][IN];
    struct tensor_row row = {
        "w", {.data = memory, .dtype = PT_F32, .dims = 2, .dim = {IN, OUT}, .transposed = true}};
    struct tensor_list got;
    struct err err = {0};

    (void)state;
    for (int i = 0; i < IN; i++)
        for (int k = 0; k < OUT; k++)
            memory[k][i] = (float)(100 * i + k);
    assert_int_equal(
        safetensors_write(&(struct tensor_list){&row, 1}, &(struct pt_sink){to_buf, &file}, &err), 0);
    assert_int_equal(safetensors_parse(file.data, file.len, &a, &got, &err), 0);
    assert_true(got.row[0].tensor.dim[0] == IN && got.row[0].tensor.dim[1] == OUT);
    const float *at = got.row[0].tensor.data;
    for (int i = 0; i < IN; i++)
        for (int k = 0; k < OUT; k++)
            assert_true(*at++ == (float)(100 * i + k));
    row.tensor.dims = 1;
    assert_int_equal(
        safetensors_write(&(struct tensor_list){&row, 1}, &(struct pt_sink){to_buf, &file}, &err), -1);
    assert_non_null(strstr(err.msg, "only a matrix of f32 can be transposed"));
}

static void expect_refusal(const char *header, size_t data, const char *says)
{
    cleanup_arena struct arena a = {0};
    uint8_t file[1024] = {0};
    size_t len = strlen(header);
    struct tensor_list got;
    struct err err = {0};

    file[0] = (uint8_t)len;
    file[1] = (uint8_t)(len >> 8);
    memcpy(file + 8, header, len);
    assert_int_equal(safetensors_parse(file, 8 + len + data, &a, &got, &err), -1);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\", expected \"%s\"", err.msg, says);
}

static void headers_that_lie_are_refused(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         "header.a: data_offsets: 4 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
         "data: 8 bytes, but the tensors are 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "within 4 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "begins at 4, expected 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
         4, "begins at 0, expected 4"},
        {"{\"a\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "header.a: dtype: expected one of"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "the shape says -1"},
        {"{\"a\":{\"dtype\":\"F6_E2M3\",\"shape\":[2,2],\"data_offsets\":[0,4]}}", 4, "the shape says 3"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "header.a.shape: expected"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "header.a.shape: expected"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,4]}}", 4,
         "header.a.shape: expected"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "the shape says -1"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "at most 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "header.a: expected dtype, shape and data_offsets"},
        {"{\"a\":7}", 0, "header.a: expected an object"},
        {"[]", 0, "header: expected an object"},
        {"{\"a\":", 0, "header: not JSON"},
        {"{} x", 0, "header: text after the JSON"},
        {"{\"__metadata__\":nothing}", 0, "header: not JSON"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refusal(cases[i].header, cases[i].data, cases[i].says);
}

static void a_length_beyond_the_file_is_refused(void **state)
{
    cleanup_arena struct arena a = {0};
    struct tensor_list got;
    struct err err = {0};
    static const uint8_t huge[16] = {255, 255, 255, 255, 255, 255, 255, 255};

    (void)state;
    assert_int_equal(safetensors_parse(huge, sizeof(huge), &a, &got, &err), -1);
    assert_non_null(strstr(err.msg, "header length: 18446744073709551615"));
}

static void two_tensors_of_one_name_are_not_written(void **state)
{
    cleanup_buf struct buf file = BUF_INIT(1 << 16);
    const struct tensor_row rows[] = {ROWS[0], ROWS[0]};
    struct tensor_list list = {rows, 2};
    struct err err = {0};

    (void)state;
    assert_int_equal(safetensors_write(&list, &(struct pt_sink){to_buf, &file}, &err), -1);
    assert_non_null(strstr(err.msg, "two tensors of one name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(turned_matrices_are_written_as_their_transpose),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(a_length_beyond_the_file_is_refused),
        cmocka_unit_test(two_tensors_of_one_name_are_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
