/* test_decoder.c - token by token the logits are those of the whole model's pass. */
#include "test.h"

#include "tools/generate/decoder.h"
#include "trainer/model/gpt2.h"
#include "trainer/state/weights/fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TIME = 6, VOCAB = 11 };

struct fixture {
    struct model_spec spec;
    struct model *model;
    struct kctx *ctx;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    cleanup_weights struct weights w = {0};
    const struct gpt2_spec g = {.vocab = VOCAB, .block_size = TIME, .n_layer = 2, .n_head = 2, .n_embd = 8};
    const struct kctx_options machine = {.threads = 2};
    struct err err;

    gpt2_layers(&g, &f->spec);
    f->model = model_make(&f->spec, 1, &err);
    f->ctx = kctx_make(&machine, &err);
    *state = f;
    if (!f->model || !f->ctx || kctx_reserve(f->ctx, model_workspace_bytes(f->model, 2), &err))
        return -1;
    return weights_open(&w, TK_SOURCE_DIR "/tests/golden/weights/nanogpt.pt", &err) ||
           fill_model(&w, f->model, &err);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    model_free(f->model);
    kctx_free(f->ctx);
    free(f);
    return 0;
}

/* However the tokens are dealt out over calls; logits one by one, or of all of a call. */
static void is_the_models_pass(void **state)
{
    struct fixture *f = *state;
    const float tokens[TIME] = {3, 10, 0, 7, 7, 2};
    const uint16_t ids[TIME] = {3, 10, 0, 7, 7, 2};
    static const int ways[][TIME] = {{1, 1, 1, 1, 1, 1}, {6}, {5, 1}, {1, 5}, {2, 3, 1}, {3, 3}};
    float want[TIME * VOCAB];
    struct err err;
    cleanup_decoder struct decoder *d = decoder_make(f->model, f->ctx, 2, &err);

    assert_non_null(d);
    assert_true(decoder_vocab(d) == VOCAB && decoder_positions(d) == TIME);
    model_forward(f->model, f->ctx, tokens, 1, NULL);
    model_head_outputs(f->model, f->ctx, want);
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        decoder_rewind(d, 0);
        for (int k = 0, at = 0; at < TIME; at += ways[w][k++]) {
            const int n = ways[w][k];
            decoder_take(d, ids + at, n);
            assert_int_equal(decoder_len(d), at + n);
            for (int one = 0; one < 2; one++)
                for (int i = 0; i < n * VOCAB; i++) {
                    const float *got = one ? decoder_logits(d, i / VOCAB, 1) : decoder_logits(d, 0, n);
                    float v = got[one ? i % VOCAB : i];
                    if (!(fabsf(v - want[at * VOCAB + i]) <= 1e-5f))
                        fail_msg("way %zu, position %d, token %d: %g, expected %g", w, at + i / VOCAB,
                                 i % VOCAB, (double)v, (double)want[at * VOCAB + i]);
                }
        }
    }
}

/* What is taken back leaves no trace. */
static void goes_back(void **state)
{
    struct fixture *f = *state;
    const uint16_t first[TIME] = {3, 10, 0, 1, 2, 4}, then[] = {7, 7, 2};
    float want[VOCAB];
    struct err err;
    cleanup_decoder struct decoder *d = decoder_make(f->model, f->ctx, 2, &err);

    decoder_take(d, first, 3);
    decoder_take(d, then, 3);
    memcpy(want, decoder_logits(d, 2, 1), sizeof(want));
    decoder_rewind(d, 0);
    decoder_take(d, first, TIME);
    decoder_rewind(d, 3);
    decoder_take(d, then, 3);
    const float *got = decoder_logits(d, 2, 1);
    for (int i = 0; i < VOCAB; i++)
        assert_true(fabsf(got[i] - want[i]) <= 1e-5f);
}

static void models_that_are_none(void **state)
{
    struct fixture *f = *state;
    struct err err;

    assert_null(decoder_make(f->model, f->ctx, 3, &err));
    assert_non_null(strstr(err.msg, "heads: 3, expected a divisor of the width (8)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_the_models_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(models_that_are_none, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
