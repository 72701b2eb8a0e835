/* test_decoder.c - token by token the logits are those of the whole model's pass. */
#include "test.h"

#include "trainer/generate/decoder.h"
#include "trainer/model/gpt2.h"
#include "trainer/weights/fill.h"

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

static void is_the_models_pass(void **state)
{
    struct fixture *f = *state;
    const float tokens[TIME] = {3, 10, 0, 7, 7, 2};
    float want[TIME * VOCAB];
    struct err err;
    cleanup_decoder struct decoder *d = decoder_make(f->model, f->ctx, 2, &err);

    assert_non_null(d);
    assert_true(decoder_vocab(d) == VOCAB && decoder_positions(d) == TIME);
    model_forward(f->model, f->ctx, tokens, 1, NULL);
    model_head_outputs(f->model, f->ctx, want);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < TIME; t++) {
            /* The second time logits are asked for at the end alone. */
            const float *got = decoder_next(d, (int)tokens[t], pass == 0 || t == TIME - 1);
            assert_int_equal(decoder_len(d), t + 1);
            assert_true((got != NULL) == (pass == 0 || t == TIME - 1));
            for (int i = 0; got && i < VOCAB; i++)
                if (fabsf(got[i] - want[t * VOCAB + i]) > 1e-5f)
                    fail_msg("position %d, token %d: %g, expected %g", t, i, (double)got[i],
                             (double)want[t * VOCAB + i]);
        }
        decoder_clear(d);
    }
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
        cmocka_unit_test_setup_teardown(models_that_are_none, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
