/* test_encoder.c - the same tokens in whatever pieces a document comes; marks; words that are too long. */
#include "test.h"

#include "golden.h"
#include "tools/text/encoder.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 40000 };

struct got {
    uint16_t token[MOST];
    size_t len;
};

static int take(void *ctx, const uint16_t *tokens, size_t n, struct err *err)
{
    struct got *g = ctx;

    if (g->len + n > MOST)
        return err_set(err, ERR_FATAL, "full");
    memcpy(g->token + g->len, tokens, n * sizeof(*tokens));
    g->len += n;
    return 0;
}

struct fixture {
    struct bpe *bpe;
    struct encoder e;
    struct got got;
};

static void open_encoder(struct fixture *f, bool marks)
{
    struct err err;
    const struct encoder_sink sink = {take, &f->got};

    encoder_release(&f->e);
    f->got.len = 0;
    assert_int_equal(encoder_make(&f->e, f->bpe, &sink, marks, &err), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err;

    f->bpe = bpe_open(GOLDEN "vocab.json", GOLDEN "merges.txt", &err);
    *state = f;
    return f->bpe ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    encoder_release(&f->e);
    bpe_free(f->bpe);
    free(f);
    return 0;
}

static void encode(struct fixture *f, const char *text, size_t len, size_t piece)
{
    struct err err;

    assert_int_equal(encoder_begin(&f->e, &err), 0);
    for (size_t at = 0; at < len; at += piece)
        assert_int_equal(encoder_put(&f->e, text + at, len - at < piece ? len - at : piece, &err), 0);
    assert_int_equal(encoder_end(&f->e, &err), 0);
}

static void pieces_do_not_show(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf text = golden_file("corpus.bin");
    cleanup_buf struct buf want = golden_file("tokens.bin");
    static const size_t piece[] = {1, 2, 3, 7, 64, 4096, 1 << 20};

    for (size_t i = 0; i < sizeof(piece) / sizeof(piece[0]); i++) {
        open_encoder(f, false);
        encode(f, text.data, text.len, piece[i]);
        assert_int_equal(f->got.len, want.len / 2 + 1);
        assert_int_equal(f->got.token[0], bpe_end_of_text(f->bpe));
        for (size_t k = 0; k < want.len / 2; k++)
            assert_int_equal(f->got.token[k + 1], golden_u16(&want, k));
        assert_int_equal(f->e.bytes, text.len);
        assert_int_equal(f->e.count, f->got.len);
    }
}

/* A mark is a border: what stands before it does not see what stands behind. */
static void marks_end_documents(void **state)
{
    struct fixture *f = *state;
    static const char text[] = "one  <|endoftext|> two<|endoftext<|endoftext|><|endoftext|>";
    struct got want;

    open_encoder(f, false);
    encode(f, "one  ", 5, 5);
    encode(f, " two<|endoftext", 15, 15);
    encode(f, "", 0, 1);
    encode(f, "", 0, 1);
    want = f->got;
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        open_encoder(f, true);
        encode(f, text, sizeof(text) - 1, piece);
        assert_int_equal(f->got.len, want.len);
        assert_memory_equal(f->got.token, want.token, want.len * sizeof(*want.token));
    }
}

static void words_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct err err;
    char *text = malloc(BPE_WORD_BYTES + 2);

    assert_non_null(text);
    memset(text, '=', BPE_WORD_BYTES + 2);
    open_encoder(f, false);
    assert_int_equal(encoder_put(&f->e, text, BPE_WORD_BYTES, &err), 0);
    assert_int_equal(encoder_put(&f->e, text, 2, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "more than 1048576 bytes without"));
    free(text);
}

static void the_sinks_failure_is_the_encoders(void **state)
{
    struct fixture *f = *state;
    struct err err;

    open_encoder(f, false);
    f->got.len = MOST;
    assert_int_equal(encoder_put(&f->e, "some words", 10, &err), -1);
    assert_string_equal(err.msg, "full");
}

static void marks_need_a_token(void **state)
{
    struct fixture *f = *state;
    cleanup_bpe struct bpe *bytes = bpe_bytes();
    const struct encoder_sink sink = {take, &f->got};
    struct err err;

    assert_int_equal(encoder_make(&f->e, bytes, &sink, true, &err), -1);
    assert_non_null(strstr(err.msg, "has no <|endoftext|>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_do_not_show, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_end_documents, setup, teardown),
        cmocka_unit_test_setup_teardown(words_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_sinks_failure_is_the_encoders, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_need_a_token, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
