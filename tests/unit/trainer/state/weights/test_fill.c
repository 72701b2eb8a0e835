/* test_fill.c - one GPT-2 from files of two ways to lay it out (tests/golden/weights/record.py), and files that do not fit. */
#include "test.h"

#include "common/buf.h"
#include "common/endian.h"
#include "trainer/cli/config.h"
#include "trainer/state/save.h"
#include "trainer/state/state_dict.h"
#include "trainer/state/weights/fill.h"
#include "trainer/state/weights/numbers.h"
#include "trainer/state/weights/weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOLDEN TK_SOURCE_DIR "/tests/golden/weights/"

static const char YAML[] = "name: small\n"
                           "model:\n"
                           "  input: {tokens: %d}\n"
                           "  layers:\n"
                           "    - {type: embedding, name: transformer, vocab: %d, width: 8}\n"
                           "    - {type: gpt2_block, name: transformer.h.0, heads: 2, blocks: 2}\n"
                           "%s"
                           "    - {type: layernorm, name: transformer.ln_f}\n"
                           "    - {type: lm_head, name: lm_head, vocab: %d}\n"
                           "loss: cross_entropy\n"
                           "optimizer: {type: sgd, lr: 0.1}\n"
                           "data: {format: tokens, train: x}\n";
static const char BLOCK[] = "    - {type: gpt2_block, name: transformer.h.1, heads: 2, blocks: 2}\n";

struct fixture {
    struct arena a;
    struct config cfg;
    struct model *model;
    struct weights w;
};

static void make_model(struct fixture *f, int positions, int vocab, const char *second)
{
    struct err err;
    const char *text = arena_printf(&f->a, YAML, positions, vocab, second, vocab);

    model_free(f->model);
    if (config_decode("t.yaml", text, strlen(text), &f->a, &f->cfg, &err) ||
        !(f->model = model_make(&f->cfg.model, 1, &err)))
        fail_msg("%s", err.msg);
    memset(f->model->values, 0, f->model->len * sizeof(float));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    make_model(f, 6, 11, BLOCK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    weights_close(&f->w);
    model_free(f->model);
    arena_release(&f->a);
    free(f);
    return 0;
}

static void read_file(struct fixture *f, const char *path)
{
    struct err err;

    weights_close(&f->w);
    if (weights_open(&f->w, path, &err))
        fail_msg("%s", err.msg);
}

static int fill_model(struct fixture *f, struct err *err)
{
    struct fill_source *from;

    if (fill_find(&f->w.list, f->model, &f->w.arena, &from, err))
        return -1;
    fill_copy(from, f->model);
    return 0;
}

static void fill_from(struct fixture *f, const char *path)
{
    struct err err;

    read_file(f, path);
    if (fill_model(f, &err))
        fail_msg("%s: %s", path, err.msg);
}

static void all_programs_files_are_one_model(void **state)
{
    struct fixture *f = *state;
    size_t n = f->model->len;
    float *want = malloc(n * sizeof(*want));

    assert_non_null(want);
    fill_from(f, GOLDEN "huggingface.safetensors");
    memcpy(want, f->model->values, n * sizeof(*want));
    for (size_t i = 0; i < n; i++)
        assert_true(want[i] != 0);
    memset(f->model->values, 0, n * sizeof(*want));
    fill_from(f, GOLDEN "nanogpt.safetensors");
    assert_memory_equal(f->model->values, want, n * sizeof(*want));
    free(want);
}

/* The first of a longer file's. */
static void fewer_positions(void **state)
{
    struct fixture *f = *state;

    fill_from(f, GOLDEN "nanogpt.safetensors");
    float first = f->model->values[f->model->row[1].offset];
    assert_string_equal(f->model->row[1].name, "transformer.wpe.weight");
    make_model(f, 4, 11, BLOCK);
    fill_from(f, GOLDEN "huggingface.safetensors");
    assert_true(f->model->values[f->model->row[1].offset] == first);
}

static void refuse(struct fixture *f, const char *want)
{
    struct err err;

    if (!fill_model(f, &err) || !strstr(err.msg, want))
        fail_msg("\"%s\", expected \"%s\"", err.msg, want);
    for (size_t i = 0; i < f->model->len; i++)
        assert_true(f->model->values[i] == 0);
}

static struct tensor_row *named(struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->w.list.len; i++)
        if (strcmp(f->w.list.row[i].name, name) == 0)
            return (struct tensor_row *)(uintptr_t)&f->w.list.row[i];
    fail_msg("%s: not there", name);
    return NULL;
}

static void files_that_do_not_fit(void **state)
{
    struct fixture *f = *state;
    struct tensor_row *row;

    read_file(f, GOLDEN "nanogpt.safetensors");
    make_model(f, 7, 11, BLOCK);
    refuse(f, "transformer.wpe.weight: (6, 8), but the model's is (7, 8)");
    make_model(f, 6, 12, BLOCK);
    refuse(f, "transformer.wte.weight: (11, 8), but the model's is (12, 8)");
    make_model(f, 6, 11, BLOCK);
    const char *bias = named(f, "_orig_mod.transformer.ln_f.bias")->name;
    named(f, bias)->name = "other";
    refuse(f, "ln_f.bias: is missing");
    named(f, "other")->name = "module.ln_f.bias"; /* any wrapper's prefix, and */
    named(f, "_orig_mod.lm_head.weight")->name = "_orig_mod.module.ln_f.bias";
    refuse(f, "ln_f.bias: there are two tensors of this name behind prefixes");
    row = named(f, "_orig_mod.transformer.wte.weight");
    row->tensor.dtype = PT_I32;
    refuse(f, "transformer.wte.weight: I32, expected F32, F16, BF16 or F64");
}

/* Of a larger model, of another one beside it: what is not the model's is not looked at. */
static void other_tensors_are_not_judged(void **state)
{
    struct fixture *f = *state;
    struct err err;

    make_model(f, 6, 11, "");
    read_file(f, GOLDEN "nanogpt.safetensors");
    named(f, "_orig_mod.transformer.h.1.ln_1.weight")->tensor.dtype = PT_BOOL8;
    assert_int_equal(fill_model(f, &err), 0);
}

/* All that the format knows, those that the model takes first. */
static const struct {
    const char *name;
    int64_t bits;
} SPEC[] = {{"F32", 32},        {"F16", 16},    {"BF16", 16},       {"F64", 64},    {"I64", 64},
            {"I32", 32},        {"U8", 8},      {"BOOL", 8},        {"I8", 8},      {"I16", 16},
            {"U16", 16},        {"U32", 32},    {"U64", 64},        {"C64", 64},    {"F8_E4M3", 8},
            {"F8_E4M3FNUZ", 8}, {"F8_E5M2", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6},
            {"F6_E3M2", 6},     {"F4", 4}};
enum { F32, F16, BF16, F64, FLOATS, TENSORS_MAX = 64 };

/* One tensor of a file that a test makes: element k is (seed + k) % 200, which all floats hold exactly. */
struct made {
    const char *name;
    size_t type; /* in SPEC */
    int32_t dims;
    int64_t dim[PT_DIMS_MAX];
    int64_t count;
    int seed;
};

static void put_elements(const struct made *m, struct buf *data)
{
    const int64_t bytes = m->count * SPEC[m->type].bits / 8;

    for (int64_t k = 0; m->type < FLOATS && k < m->count; k++) {
        const float v = (float)((m->seed + k) % 200);
        const double d = (double)v;
        uint32_t bits;
        memcpy(&bits, &v, sizeof(bits));
        if (m->type == BF16)
            bits >>= 16;
        else if (m->type == F16)
            bits = v != 0 ? (bits >> 13) - (112 << 10) : 0;
        buf_append(data, m->type == F64 ? (const void *)&d : &bits, (size_t)SPEC[m->type].bits / 8, NULL);
    }
    for (int64_t k = 0; m->type >= FLOATS && k < bytes; k++)
        buf_append(data, "\x5a", 1, NULL);
}

/* The header begins with the `first` of them, the data with the last; the header's length is any, so that nothing is aligned. */
static void open_made(struct fixture *f, const struct made *m, int n, int first)
{
    cleanup_buf struct buf data = BUF_INIT(1 << 20), file = BUF_INIT(1 << 20);
    char path[] = "/tmp/test_fill.XXXXXX";
    int64_t from[TENSORS_MAX];
    struct err err;

    for (int i = n - 1; i >= 0; i--) {
        from[i] = (int64_t)data.len;
        put_elements(&m[i], &data);
    }
    buf_append(&file, (uint8_t[8]){0}, 8, NULL);
    for (int i = 0; i < n; i++) {
        const struct made *t = &m[(first + i) % n];
        const int64_t at = from[(first + i) % n];
        buf_printf(&file, NULL, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "{", t->name,
                   SPEC[t->type].name);
        for (int d = 0; d < t->dims; d++)
            buf_printf(&file, NULL, "%s%d", d ? "," : "", (int)t->dim[d]);
        buf_printf(&file, NULL, "],\"data_offsets\":[%d,%d]}", (int)at,
                   (int)(at + t->count * SPEC[t->type].bits / 8));
    }
    buf_puts(&file, "}", NULL);
    le_put(file.data, file.len - 8, 8);
    buf_append(&file, data.data, data.len, NULL);
    assert_int_equal(buf_check(&file, &err) || buf_check(&data, &err), 0);
    cleanup_close int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, file.data, file.len) == (ssize_t)file.len);
    weights_close(&f->w);
    int rc = weights_open(&f->w, path, &err);
    unlink(path);
    if (rc)
        fail_msg("%s", err.msg);
}

/* The model's tensors with elements of type `type`, all four in turn for FLOATS. */
static int make_all(struct fixture *f, struct made *m, size_t type)
{
    int n = 0;
    const struct state_row *row = f->model->state;

    for (int i = 0; i < f->model->states; i++) {
        if (row[i].tied)
            continue;
        m[n] = (struct made){.name = row[i].name,
                             .type = type < FLOATS ? type : (size_t)i % FLOATS,
                             .dims = row[i].dims,
                             .count = (int64_t)(row[i].bytes / sizeof(float)),
                             .seed = i};
        memcpy(m[n++].dim, row[i].dim, (size_t)row[i].dims * sizeof(row[i].dim[0]));
    }
    return n;
}

/* A .safetensors file of any order and any of the four types, with tensors of types that nothing here reads beside it. */
static void safetensors_of_every_shape(void **state)
{
    static const char *const names[] = {"position_ids", "h.0.scale", "z", "a.b.quantized"};
    struct fixture *f = *state;
    struct made m[TENSORS_MAX];
    struct err err;

    for (int round = 0; round < 2 * (int)ARRAY_LEN(SPEC); round++) {
        int n = make_all(f, m, (size_t)round % (FLOATS + 1));
        for (int i = 0; i < round % 5; i++) {
            const size_t other = FLOATS + (size_t)(round + 7 * i) % (ARRAY_LEN(SPEC) - FLOATS);
            m[n++] = (struct made){
                names[i % 4], other, 2, {i == 3 ? 0 : 4 + 4 * i, 3}, i == 3 ? 0 : 12 + 12 * i, 0};
        }
        open_made(f, m, n, round);
        memset(f->model->values, 0, f->model->len * sizeof(float));
        if (fill_model(f, &err))
            fail_msg("round %d: %s", round, err.msg);
        const struct state_row *row = f->model->state;
        for (int i = 0; i < f->model->states; i++)
            for (int k = 0; !row[i].tied && k < (int)(row[i].bytes / sizeof(float)); k++)
                assert_true(((const float *)row[i].data)[k] == (float)((i + k) % 200));
    }
}

static void types_that_are_no_floats_are_refused_where_they_are_used(void **state)
{
    struct fixture *f = *state;
    struct made m[TENSORS_MAX];
    char want[160];

    for (size_t type = FLOATS; type < ARRAY_LEN(SPEC); type++) {
        int n = make_all(f, m, F32);
        m[type].type = type;
        open_made(f, m, n, 5);
        memset(f->model->values, 0, f->model->len * sizeof(float));
        snprintf(want, sizeof(want), "%s: %s, expected F32, F16, BF16 or F64", m[type].name, SPEC[type].name);
        refuse(f, want);
    }
}

static void a_head_of_its_own_is_refused(void **state)
{
    struct fixture *f = *state;
    static const float other[11 * 8] = {1};

    read_file(f, GOLDEN "nanogpt.safetensors");
    named(f, "_orig_mod.lm_head.weight")->tensor.data = other;
    refuse(f,
           "lm_head.weight: differs from transformer.wte.weight, but the model shares one tensor for both");
}

/* What is written of a GPT-2 is what Hugging Face's file of it has, under the names of GPT2LMHeadModel. */
static void what_is_written_is_hugging_faces(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/test_fill.XXXXXX.safetensors";
    int fd = mkstemps(path, 12);
    struct weights theirs;
    struct err err;

    assert_true(fd >= 0 && close(fd) == 0);
    fill_from(f, GOLDEN "huggingface.safetensors");
    const struct tensor_list list =
        state_dict_model(f->model->state, f->model->states, STATE_DICT_SAFETENSORS, &f->a);
    assert_int_equal(save_tensors(path, &list, &err), 0);
    read_file(f, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weights_open(&theirs, GOLDEN "huggingface.safetensors", &err), 0);
    assert_int_equal(f->w.list.len, theirs.list.len - 2); /* without their masks */
    for (size_t i = 0; i < f->w.list.len; i++) {
        const struct tensor_row *ours = &f->w.list.row[i];
        const struct pt_tensor *t = NULL;
        for (size_t k = 0; k < theirs.list.len; k++)
            if (strcmp(ours->name, arena_printf(&f->a, "transformer.%s", theirs.list.row[k].name)) == 0)
                t = &theirs.list.row[k].tensor;
        assert_non_null(t);
        assert_int_equal(t->dims, ours->tensor.dims);
        assert_memory_equal(t->dim, ours->tensor.dim, sizeof(t->dim));
        assert_memory_equal(t->data, ours->tensor.data, (size_t)pt_tensor_bytes(t));
    }
    weights_close(&theirs);
}

/* A FIFO is not waited for; of a .pt file, whose reader is gone, the error has the line that makes a .safetensors of it. */
static void files_of_something_else(void **state)
{
    static const char PT[] = TK_SOURCE_DIR "/tests/golden/torch/state.pt";
    char fifo[] = "/tmp/test_fill.XXXXXX";
    const struct {
        const char *path, *says;
        enum err_kind kind;
    } cases[] = {
        {GOLDEN "record.py", "record.py: text that begins \"#!/usr/bin/env python3\", expected", ERR_INVALID},
        {"/proc/self/exe", "exe: read as .safetensors: header length", ERR_INVALID},
        {"/nonexistent", "/nonexistent: No such file", ERR_NOT_FOUND},
        {"/", "expected a file", ERR_INVALID},
        {fifo, "expected a file", ERR_INVALID},
        {PT,
         "state.pt: a .pt file, which is not read. This makes a .safetensors of it: python3 -c \"import sys",
         ERR_INVALID},
    };
    struct fixture *f = *state;
    cleanup_close int fd = mkstemp(fifo);
    struct err err;

    assert_true(fd >= 0 && unlink(fifo) == 0 && mkfifo(fifo, 0600) == 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(weights_open(&f->w, cases[i].path, &err), -1);
        assert_int_equal(err.kind, cases[i].kind);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("\"%s\", expected \"%s\"", err.msg, cases[i].says);
        assert_int_equal(weights_refuse_pt(cases[i].path, &err), cases[i].path == PT ? -1 : 0);
    }
    assert_int_equal(unlink(fifo), 0);
    /* A name is whatever somebody has called a file: it is not in what is pasted into a shell. */
    assert_null(strstr(strstr(err.msg, "python3"), "state.pt"));
}

/* Names are looked for one by one: a file of a million would keep that busy for hours. */
static void files_of_too_many_tensors(void **state)
{
    struct fixture *f = *state;
    cleanup_arena struct arena a = {0};
    static const float one = 1;
    struct tensor_row *row = arena_array(&a, WEIGHTS_TENSORS_MAX + 1, struct tensor_row);
    struct tensor_list list = {row, WEIGHTS_TENSORS_MAX + 1};
    char path[] = "/tmp/test_fill.XXXXXX.safetensors";
    int fd = mkstemps(path, 12);
    struct err err;

    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < list.len; i++)
        row[i] = (struct tensor_row){arena_printf(&a, "%zu", i), {.data = &one, .dtype = PT_F32}};
    assert_int_equal(save_tensors(path, &list, &err), 0);
    int rc = weights_open(&f->w, path, &err);
    list.len--;
    assert_int_equal(save_tensors(path, &list, &err), 0);
    read_file(f, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(f->w.list.len, WEIGHTS_TENSORS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_programs_files_are_one_model),
        TEST(fewer_positions),
        TEST(files_that_do_not_fit),
        TEST(safetensors_of_every_shape),
        TEST(types_that_are_no_floats_are_refused_where_they_are_used),
        TEST(a_head_of_its_own_is_refused),
        TEST(what_is_written_is_hugging_faces),
        TEST(other_tensors_are_not_judged),
        TEST(files_of_something_else),
        TEST(files_of_too_many_tensors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
