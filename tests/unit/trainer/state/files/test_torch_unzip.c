/* test_torch_unzip.c - torch.save's files and ours come back; no damage is taken for content. */
#include "common/fsutil.h"
#include "test.h"
#include "trainer/state/files/torch_unzip.h"
#include "trainer/state/files/torch_zip.h"
#include "trainer/state/files/unpickle.h"
#include "values.h"

#include <string.h>

enum { FILE_MAX = 1 << 20 };

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

static void expect_same(const struct pt_value *a, const struct pt_value *b)
{
    assert_int_equal(a->type, b->type);
    switch (a->type) {
    case PT_NONE:
        break;
    case PT_BOOL:
        assert_int_equal(a->b, b->b);
        break;
    case PT_INT:
        assert_int_equal(a->i, b->i);
        break;
    case PT_FLOAT:
        assert_memory_equal(&a->f, &b->f, sizeof(a->f));
        break;
    case PT_STR:
        assert_string_equal(a->s, b->s);
        break;
    case PT_TENSOR:
        assert_int_equal(a->tensor.dtype, b->tensor.dtype);
        assert_int_equal(a->tensor.dims, b->tensor.dims);
        assert_memory_equal(a->tensor.dim, b->tensor.dim, (size_t)a->tensor.dims * sizeof(a->tensor.dim[0]));
        if (pt_tensor_bytes(&a->tensor))
            assert_memory_equal(a->tensor.data, b->tensor.data, (size_t)pt_tensor_bytes(&a->tensor));
        break;
    case PT_LIST:
    case PT_TUPLE:
        assert_int_equal(a->seq.len, b->seq.len);
        for (size_t i = 0; i < a->seq.len; i++)
            expect_same(&a->seq.values[i], &b->seq.values[i]);
        break;
    case PT_DICT:
    case PT_ORDERED_DICT:
        assert_int_equal(a->dict.len, b->dict.len);
        for (size_t i = 0; i < a->dict.len; i++) {
            expect_same(&a->dict.items[i].key, &b->dict.items[i].key);
            expect_same(&a->dict.items[i].value, &b->dict.items[i].value);
        }
        break;
    }
}

static void reads_what_torch_saved(void **state)
{
    static const struct {
        const char *file;
        struct pt_value (*make)(struct arena *a);
    } cases[] = {{"state.pt", values_state}, {"values.pt", values_all}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf file = BUF_INIT(FILE_MAX);
        struct pt_value got;
        struct err err = {0};
        char path[256];
        snprintf(path, sizeof(path), "%s/tests/golden/torch/%s", TK_SOURCE_DIR, cases[i].file);
        assert_int_equal(fs_read(path, &file, &err), 0);
        if (torch_zip_read(file.data, file.len, &a, &got, &err))
            fail_msg("%s: %s", cases[i].file, err.msg);
        struct pt_value want = cases[i].make(&a);
        expect_same(&got, &want);
    }
}

static void make_file(struct arena *a, struct pt_value (*make)(struct arena *a), struct buf *file)
{
    struct err err = {0};
    struct pt_value v = make(a);

    assert_int_equal(torch_zip_write(&v, "archive", &(struct pt_sink){to_buf, file}, &err), 0);
}

static void reads_what_we_wrote(void **state)
{
    struct pt_value (*const make[])(struct arena *) = {values_state, values_all, values_batches};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(make); i++) {
        cleanup_arena struct arena a = {0};
        cleanup_buf struct buf file = BUF_INIT(1 << 24);
        struct pt_value got;
        struct err err = {0};
        make_file(&a, make[i], &file);
        if (torch_zip_read(file.data, file.len, &a, &got, &err))
            fail_msg("%s", err.msg);
        struct pt_value want = make[i](&a);
        expect_same(&got, &want);
    }
}

/* Cut anywhere: refused. A byte changed anywhere: refused, or in a place that carries nothing. */
static void no_damage_passes_for_content(void **state)
{
    cleanup_arena struct arena keep = {0};
    cleanup_buf struct buf file = BUF_INIT(FILE_MAX);
    struct err err = {0};
    size_t refused = 0;

    (void)state;
    make_file(&keep, values_state, &file);
    struct pt_value want = values_state(&keep);
    for (size_t len = 0; len < file.len; len++) {
        cleanup_arena struct arena a = {0};
        cleanup_free char *cut = malloc(len + 1); /* its own allocation: reading on is seen by ASan */
        struct pt_value got;
        memcpy(cut, file.data, len);
        assert_int_equal(torch_zip_read(cut, len, &a, &got, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
    }
    for (size_t i = 0; i < file.len; i++) {
        cleanup_arena struct arena a = {0};
        struct pt_value got;
        file.data[i] = (char)(file.data[i] ^ 0x55);
        if (torch_zip_read(file.data, file.len, &a, &got, &err))
            refused++;
        else
            expect_same(&got, &want);
        file.data[i] = (char)(file.data[i] ^ 0x55);
    }
    assert_true(refused > 300);
}

static const struct pt_tensor *tensor_at(const struct pt_value *root, const char *first, const char *second)
{
    const struct pt_value *v = pt_find(root, first);

    v = second ? pt_find(v, second) : v;
    assert_non_null(v);
    assert_int_equal(v->type, PT_TENSOR);
    return &v->tensor;
}

/* A state_dict with its metadata, a parameter, a view into a larger storage, an optimiser's groups. */
static void reads_what_programs_save(void **state)
{
    cleanup_arena struct arena a = {0};
    cleanup_buf struct buf file = BUF_INIT(FILE_MAX);
    static const float view[] = {2, 3, 4, 5};
    static const float bias[] = {0, 0.125F, 0.25F};
    struct pt_value root;
    struct err err = {0};

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/golden/torch/module.pt", &file, &err), 0);
    if (torch_zip_read(file.data, file.len, &a, &root, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(pt_find(&root, "model")->dict.len, 7);
    assert_memory_equal(tensor_at(&root, "model", "0.bias")->data, bias, sizeof(bias));
    assert_memory_equal(tensor_at(&root, "parameter", NULL)->data, bias, sizeof(bias));
    assert_int_equal(tensor_at(&root, "model", "1.num_batches_tracked")->dtype, PT_I64);
    assert_memory_equal(tensor_at(&root, "view", NULL)->data, view, sizeof(view));
    const struct pt_value *groups = pt_find(pt_find(&root, "optim"), "param_groups");
    assert_int_equal(groups->seq.len, 1);
    assert_int_equal(pt_find(&groups->seq.values[0], "params")->seq.len, 4);
    assert_null(pt_find_int(pt_find(pt_find(&root, "optim"), "state"), 0));
}

static int no_storage(void *ctx, const char *key, const void **ret, size_t *ret_bytes, struct err *err)
{
    (void)ctx, (void)ret, (void)ret_bytes;
    return err_set(err, ERR_INVALID, "no storage %s", key);
}

static void expect_refusal(const char *pickle, size_t len, const char *says)
{
    cleanup_arena struct arena a = {0};
    struct pt_value got;
    struct err err = {0};

    assert_int_equal(unpickle(pickle, len, &(struct unpickle_source){no_storage, NULL}, &a, &got, &err), -1);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\", expected \"%s\"", err.msg, says);
}

static void refuses_pickles_that_weights_do_not_need(void **state)
{
#define CASE(text, says)                                                                                     \
    {                                                                                                        \
        text, sizeof(text) - 1, says                                                                         \
    }
    static const struct {
        const char *pickle;
        size_t len;
        const char *says;
    } cases[] = {
        CASE("", "ends without"),
        CASE("\x80\x04N.", "protocol 4, expected 2"),
        CASE("\x80\x02"
             "cos\nsystem\nX\x02\0\0\0lstR.",
             "byte 2: \"os.system\" is not allowed"),
        CASE("\x80\x02"
             "ctorch\nFloatStorage\n)R.",
             "cannot be called"),
        CASE("\x80\x02i.", "opcode 0x69"),
        CASE("\x80\x02.", "nothing on the stack"),
        CASE("\x80\x02(.", "nothing on the stack"),
        CASE("\x80\x02h\x01.", "a reference to nothing"),
        CASE("\x80\x02Nq\x07.", "not the next"),
        CASE("\x80\x02K\x01u.", "no mark"),
        CASE("\x80\x02K\x01(K\x01K\x02u.", "takes none"),
        CASE("\x80\x02}(K\x01u.", "a key without a value"),
        CASE("\x80\x02(K\x01K\x02u.", "items without a container"),
        CASE("\x80\x02}N\x88s.", "dict key"),
        CASE("\x80\x02X\xff\xff\xff\xff", "ends in the middle"),
        CASE("\x80\x02X\x01\0\0\0\0.", "a zero byte"),
        CASE("\x80\x02\x8a\x09\1\1\1\1\1\1\1\1\1.", "more than 64 bits"),
        CASE("\x80\x02(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
             "0X\x03\0\0\0cpuK\x04tQ.",
             "no storage 0"),
        CASE("\x80\x02"
             "ctorch._utils\n_rebuild_tensor_v2\n(K\0K\0))tR.",
             "expected a storage"),
        CASE("\x80\x02]q\0h\0a.", "more values than"),
        CASE("\x80\x02]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.",
             "nested deeper"),
        CASE("\x80\x02\x86.", "more than there is"),
        CASE("\x80\x02K\x01}b.", "attributes"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refusal(cases[i].pickle, cases[i].len, cases[i].says);
}

/* Each list holds the one before it twice: 2^25 values in a hundred bytes. */
static void sharing_does_not_multiply(void **state)
{
    cleanup_buf struct buf p = BUF_INIT(1 << 12);
    struct err err = {0};

    (void)state;
    assert_int_equal(buf_append(&p, "\x80\x02]q\0", 5, &err), 0);
    for (int i = 0; i < 25; i++) {
        char step[] = {']', 'q', (char)(i + 1), '(', 'h', (char)i, 'h', (char)i, 'e'};
        assert_int_equal(buf_append(&p, step, sizeof(step), &err), 0);
    }
    assert_int_equal(buf_puts(&p, ".", &err), 0);
    expect_refusal(p.data, p.len, "more values than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_torch_saved),
        cmocka_unit_test(reads_what_programs_save),
        cmocka_unit_test(reads_what_we_wrote),
        cmocka_unit_test(no_damage_passes_for_content),
        cmocka_unit_test(refuses_pickles_that_weights_do_not_need),
        cmocka_unit_test(sharing_does_not_multiply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
