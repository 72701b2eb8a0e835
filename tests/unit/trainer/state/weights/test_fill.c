/* test_fill.c - one GPT-2 from the files of four programs (tests/golden/weights/record.py), and files that do not fit. */
#include "test.h"

#include "trainer/cli/config.h"
#include "trainer/state/files/export.h"
#include "trainer/state/weights/fill.h"
#include "trainer/state/weights/gpt2_names.h"
#include "trainer/state/weights/rewrite.h"

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
    memset(model_values(f->model), 0, model_len(f->model) * sizeof(float));
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

static void fill_from(struct fixture *f, const char *path)
{
    struct err err;

    read_file(f, path);
    if (fill_model(&f->w, f->model, &err))
        fail_msg("%s: %s", path, err.msg);
}

static void all_programs_files_are_one_model(void **state)
{
    struct fixture *f = *state;
    static const char *const others[] = {GOLDEN "nanogpt.pt", GOLDEN "llmc-f32.bin"};
    size_t n = model_len(f->model);
    float *want = malloc(n * sizeof(*want));

    assert_non_null(want);
    fill_from(f, GOLDEN "huggingface.safetensors");
    memcpy(want, model_values(f->model), n * sizeof(*want));
    for (size_t i = 0; i < n; i++)
        assert_true(want[i] != 0);
    for (int i = 0; i < 2; i++) {
        memset(model_values(f->model), 0, n * sizeof(*want));
        fill_from(f, others[i]);
        assert_memory_equal(model_values(f->model), want, n * sizeof(*want));
    }
    fill_from(f, GOLDEN "llmc-bf16.bin");
    assert_int_equal(f->w.heads, 2);
    for (size_t i = 0; i < n; i++) {
        float off = model_values(f->model)[i] / want[i] - 1;
        assert_true(off <= 0x1p-8f && off >= -0x1p-8f);
    }
    free(want);
}

/* The first of a longer file's. */
static void fewer_positions(void **state)
{
    struct fixture *f = *state;
    int rows;

    fill_from(f, GOLDEN "nanogpt.pt");
    const struct param_row *row = model_params(f->model, &rows);
    float first = model_values(f->model)[row[1].offset];
    assert_string_equal(row[1].name, "transformer.wpe.weight");
    make_model(f, 4, 11, BLOCK);
    fill_from(f, GOLDEN "huggingface.safetensors");
    assert_true(model_values(f->model)[model_params(f->model, &rows)[1].offset] == first);
}

static void refuse(struct fixture *f, const char *want)
{
    struct err err;

    if (!fill_model(&f->w, f->model, &err) || !strstr(err.msg, want))
        fail_msg("\"%s\", expected \"%s\"", err.msg, want);
    for (size_t i = 0; i < model_len(f->model); i++)
        assert_true(model_values(f->model)[i] == 0);
}

static void files_that_do_not_fit(void **state)
{
    struct fixture *f = *state;
    struct tensor_row *row;

    read_file(f, GOLDEN "nanogpt.pt");
    make_model(f, 7, 11, BLOCK);
    refuse(f, "transformer.wpe.weight: (6, 8), but the model's is (7, 8)");
    make_model(f, 6, 12, BLOCK);
    refuse(f, "transformer.wte.weight: (11, 8), but the model's is (12, 8)");
    make_model(f, 6, 11, "");
    refuse(f, "h.1.attn.c_attn.weight: the model has no such tensor");
    make_model(f, 6, 11, BLOCK);
    f->w.list.len -= 2; /* lm_head, which may be missing, and the one before */
    refuse(f, "ln_f.bias: is missing");
    f->w.list.len += 2;
    row = (struct tensor_row *)(uintptr_t)f->w.list.row;
    row[0].tensor.dtype = PT_I32;
    refuse(f, "transformer.wte.weight: expected floats");
    row[0].tensor.dtype = PT_F32;
}

static void a_head_of_its_own_is_refused(void **state)
{
    struct fixture *f = *state;

    read_file(f, GOLDEN "nanogpt.pt");
    struct tensor_row *row = (struct tensor_row *)(uintptr_t)f->w.list.row;
    for (size_t i = 0; i < f->w.list.len; i++)
        if (strcmp(gpt2_names_bare(row[i].name), "lm_head.weight") == 0)
            row[i].tensor.data = row[2].tensor.data;
    refuse(f,
           "lm_head.weight: differs from transformer.wte.weight, but the model shares one tensor for both");
}

/* Through each layout and back: the same model. */
static void layouts_are_the_same_weights(void **state)
{
    struct fixture *f = *state;
    static const struct rewrite_options how[] = {{REWRITE_NANOGPT, PT_F32, true},
                                                 {REWRITE_NANOGPT, PT_F32, false},
                                                 {REWRITE_HUGGINGFACE, PT_F32, false},
                                                 {REWRITE_BARE, PT_F32, false}};
    struct err err;
    size_t n = model_len(f->model);
    float *want = malloc(n * sizeof(*want));

    assert_non_null(want);
    fill_from(f, GOLDEN "nanogpt.pt");
    memcpy(want, model_values(f->model), n * sizeof(*want));
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        struct tensor_list out;
        read_file(f, GOLDEN "huggingface.safetensors");
        assert_int_equal(rewrite(&f->w.list, &how[i], &f->a, &out, &err), 0);
        assert_int_equal(out.len, 28 + how[i].tied);
        assert_true(gpt2_names_transposed(&out) == (how[i].layout == REWRITE_HUGGINGFACE));
        memset(model_values(f->model), 0, n * sizeof(*want));
        f->w.list = out;
        assert_int_equal(fill_model(&f->w, f->model, &err), 0);
        assert_memory_equal(model_values(f->model), want, n * sizeof(*want));
    }
    free(want);
}

static void files_of_something_else(void **state)
{
    struct fixture *f = *state;
    struct err err;

    assert_int_equal(weights_open(&f->w, GOLDEN "record.py", &err), -1);
    assert_non_null(strstr(err.msg, "record.py: neither llm.c's format nor .pt; read as .safetensors"));
    assert_int_equal(weights_open(&f->w, "/nonexistent", &err), -1);
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_int_equal(weights_open(&f->w, "/", &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
}

static void a_fifo_that_nobody_writes_to(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/test_fill.XXXXXX";
    int fd = mkstemp(path);
    struct err err;

    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0 && mkfifo(path, 0600) == 0);
    alarm(20);
    int rc = weights_open(&f->w, path, &err);
    alarm(0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "expected a file"));
}

/* Names are looked for one by one: a file of a million would keep that busy for hours. */
static void files_of_too_many_tensors(void **state)
{
    struct fixture *f = *state;
    cleanup_arena struct arena a = {0};
    static const float one = 1;
    struct tensor_row *row = arena_array(&a, WEIGHTS_TENSORS_MAX + 1, struct tensor_row);
    struct tensor_list list = {row, WEIGHTS_TENSORS_MAX + 1};
    char path[] = "/tmp/test_fill.XXXXXX";
    int fd = mkstemp(path);
    struct err err;

    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < list.len; i++)
        row[i] = (struct tensor_row){arena_printf(&a, "%zu", i), {&one, PT_F32, 0, {0}}};
    assert_int_equal(export_safetensors(path, &list, &err), 0);
    int rc = weights_open(&f->w, path, &err);
    list.len--;
    assert_int_equal(export_safetensors(path, &list, &err), 0);
    read_file(f, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(f->w.list.len, WEIGHTS_TENSORS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_programs_files_are_one_model, setup, teardown),
        cmocka_unit_test_setup_teardown(fewer_positions, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_do_not_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_head_of_its_own_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(layouts_are_the_same_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(files_of_something_else, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fifo_that_nobody_writes_to, setup, teardown),
        cmocka_unit_test_setup_teardown(files_of_too_many_tensors, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
