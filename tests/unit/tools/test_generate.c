/* test_generate.c - `trainer generate`: the same text for the same seed, past the model's positions, up to the end. */
#include "test.h"

#include "tools/tools.h"
#include "trainer/model/gpt2.h"
#include "trainer/model/model.h"
#include "trainer/state/files/export.h"
#include "trainer/state/state_dict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT TK_SOURCE_DIR "/tests/golden/text/"

struct fixture {
    char folder[64], bytes[80], words[80];
    char *said;
    size_t len;
};

/* Weights as a seed draws them; end: how much likelier the last token is at every place. */
static void put_model(const char *path, int vocab, float end)
{
    cleanup_arena struct arena a = {0};
    struct model_spec *spec = arena_new(&a, struct model_spec);
    const struct gpt2_spec g = {.vocab = vocab, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 16};
    struct torch_rng rng;
    struct err err;
    int rows;

    gpt2_layers(&g, spec);
    cleanup_model struct model *m = model_make(spec, 1, &err);
    assert_non_null(m);
    torch_rng_seed(&rng, 3);
    model_init(m, &rng);
    const struct state_row *row = model_state(m, &rows);
    float *wte = row[0].data, *bias = NULL;
    for (int i = 0; i < rows; i++)
        if (strcmp(row[i].name, "transformer.ln_f.bias") == 0)
            bias = row[i].data;
    assert_non_null(bias);
    for (int i = 0; i < 16; i++) {
        wte[(vocab - 1) * 16 + i] = end;
        bias[i] = end;
    }
    struct tensor_list list = state_dict_model(row, rows, false, &a);
    assert_int_equal(export_safetensors(path, &list, &err), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->folder, sizeof(f->folder), "/tmp/test_generate.XXXXXX");
    *state = f;
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->bytes, sizeof(f->bytes), "%s/bytes.safetensors", f->folder);
    snprintf(f->words, sizeof(f->words), "%s/words.safetensors", f->folder);
    put_model(f->bytes, 256, 0);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->folder);
    int rc = system(command);
    free(f->said);
    free(f);
    return rc;
}

static int generate(struct fixture *f, int argc, char *const *argv, struct err *err)
{
    const struct command *c = &command_generate;

    free(f->said);
    FILE *out = open_memstream(&f->said, &f->len);
    int rc = c->main(c, argc, argv, out, err);
    fclose(out);
    return rc;
}

/* 40 bytes by a model of 8 positions. */
static void a_seed_gives_a_text(void **state)
{
    struct fixture *f = *state;
    char seed[32];
    char *const argv[] = {"--init_from", f->bytes,   "--heads", "2",  "--prompt",
                          "ab",          "--tokens", "40",      seed, "--threads=2"};
    char first[64];
    struct err err;

    for (int i = 0; i < 3; i++) {
        snprintf(seed, sizeof(seed), "--seed=%d", i < 2 ? 5 : 6);
        if (generate(f, i == 1 ? 9 : 10, argv, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(f->len, 2 + 40 + 1);
        assert_memory_equal(f->said, "ab", 2);
        if (i == 0)
            memcpy(first, f->said, f->len);
        else
            assert_true((memcmp(first, f->said, f->len) == 0) == (i == 1));
    }
}

/* A prompt may be longer than the model's positions; without heat a text repeats itself whatever the seed. */
static void long_prompts(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {"--init_from", f->bytes, "--heads=2",     "--prompt", "a long, long prompt",
                          "--tokens",    "1",      "--temperature", "0"};
    struct err err;

    assert_int_equal(generate(f, 9, argv, &err), 0);
    assert_int_equal(f->len, 19 + 1 + 1);
    assert_memory_equal(f->said, "a long, long prompt", 19);
}

/* An empty prompt is none; one of a page is taken whole. */
static void prompts_of_any_length(void **state)
{
    struct fixture *f = *state;
    char page[6001], none[64];
    char *argv[] = {"--init_from", f->bytes, "--heads=2", "--tokens=5", "--prompt", page};
    struct err err;

    assert_int_equal(generate(f, 4, argv, &err), 0);
    assert_int_equal(f->len, 5 + 1);
    memcpy(none, f->said, f->len);
    page[0] = '\0';
    if (generate(f, 6, argv, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(f->len, 5 + 1);
    assert_memory_equal(f->said, none, f->len);
    memset(page, 'a', 6000);
    page[6000] = '\0';
    if (generate(f, 6, argv, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(f->len, 6000 + 5 + 1);
    assert_memory_equal(f->said, page, 6000);
}

/* However little heat there is, and however many are to be chosen among. */
static void the_edges_of_sampling(void **state)
{
    struct fixture *f = *state;
    static char *const ways[][3] = {{"--temperature=0", "--top_k=0", "--seed=1"},
                                    {"--temperature=0", "--top_k=16777216", "--seed=0"},
                                    {"--temperature=1e-300", "--top_k=0", "--seed=9223372036854775807"},
                                    {"--temperature=1000", "--top_k=1", "--seed=7"}};
    char first[64];
    struct err err;

    for (int i = 0; i < 4; i++) {
        char *const argv[] = {"--init_from", f->bytes,   "--heads=2", "--prompt=ab",
                              "--tokens=20", ways[i][0], ways[i][1],  ways[i][2]};
        if (generate(f, 8, argv, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(f->len, 2 + 20 + 1);
        if (i == 0)
            memcpy(first, f->said, f->len);
        assert_memory_equal(f->said, first, f->len); /* each of them: always the likeliest */
    }
}

static void the_end_of_text_ends_it(void **state)
{
    struct fixture *f = *state;
    char *const argv[] = {
        "--init_from", f->words,          "--heads=2",  "--vocab",         TEXT "vocab.json",
        "--merges",    TEXT "merges.txt", "--tokens=9", "--temperature=0", "--prompt",
        "the"};
    struct err err;

    put_model(f->words, 1201, 1);
    if (generate(f, 9, argv, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(f->said, "\n");
    assert_int_equal(generate(f, 11, argv, &err), 0);
    assert_string_equal(f->said, "the\n");
    put_model(f->words, 1201, 0);
    assert_int_equal(generate(f, 9, argv, &err), 0);
    assert_true(f->len > 9); /* nine tokens of a byte or more */
}

static void refuse(struct fixture *f, int argc, char *const *argv, const char *want)
{
    struct err err = {0};

    assert_int_equal(generate(f, argc, argv, &err), -1);
    if (!strstr(err.msg, want))
        fail_msg("\"%s\", expected \"%s\"", err.msg, want);
}

static void what_cannot_be(void **state)
{
    struct fixture *f = *state;

    refuse(f, 0, NULL, "expected --init_from FILE");
    refuse(f, 4, (char *const[]){"--init_from", f->bytes, "--vocab", "x"}, "and --vocab and --merges");
    refuse(f, 2, (char *const[]){"--init_from", f->bytes},
           "--heads: 0, expected a divisor of the width (16)");
    refuse(f, 3, (char *const[]){"--init_from", f->bytes, "linear"}, "linear: expected a GPT-2");
    refuse(f, 3, (char *const[]){"linear", "mnist-cnn", "--help"}, "expected one NAME");
    refuse(f, 2, (char *const[]){"--init_from", "/nowhere"}, "/nowhere");
    put_model(f->words, 256, NAN);
    refuse(f, 3, (char *const[]){"--init_from", f->words, "--heads=2"},
           "--init_from: the model's output is not finite: its weights are too large or not numbers");
    put_model(f->words, 1201, 1);
    refuse(f, 3, (char *const[]){"--init_from", f->words, "--heads=2"},
           "the model has 1201 tokens, but bytes are 256");
    refuse(f, 7,
           (char *const[]){"--init_from", f->bytes, "--heads=2", "--vocab", TEXT "vocab.json", "--merges",
                           TEXT "merges.txt"},
           "the model has 256 tokens, but the vocabulary 1201");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_seed_gives_a_text, setup, teardown),
        cmocka_unit_test_setup_teardown(long_prompts, setup, teardown),
        cmocka_unit_test_setup_teardown(prompts_of_any_length, setup, teardown),
        cmocka_unit_test_setup_teardown(the_edges_of_sampling, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_text_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
