/* test_bpe.c - tokens as tokenizers and tiktoken make them, and back; vocabularies that cannot be. */
#include "test.h"

#include "golden.h"
#include "tools/text/bpe.h"
#include "tools/text/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct bpe *open_golden(void)
{
    struct err err;
    struct bpe *b = bpe_open(GOLDEN "vocab.json", GOLDEN "merges.txt", &err);

    if (!b)
        fail_msg("%s", err.msg);
    return b;
}

/* Twice: the second time the short words are remembered. */
static void tokens_are_those_of_tokenizers(void **state)
{
    (void)state;
    cleanup_buf struct buf text = golden_file("corpus.bin");
    cleanup_buf struct buf want = golden_file("tokens.bin");
    cleanup_bpe struct bpe *b = open_golden();
    const uint8_t *p = (const uint8_t *)text.data;
    uint16_t token[512];

    assert_int_equal(bpe_vocab(b), 1201);
    assert_int_equal(bpe_end_of_text(b), 1200);
    for (int pass = 0; pass < 2; pass++) {
        size_t seen = 0;
        for (size_t at = 0; at < text.len;) {
            size_t word = words_next(p + at, text.len - at, false);
            size_t n = bpe_word(b, p + at, word, token);
            for (size_t i = 0; i < n; i++, seen++)
                if (token[i] != golden_u16(&want, seen))
                    fail_msg("token %zu, byte %zu: %u, expected %u", seen, at, token[i],
                             golden_u16(&want, seen));
            at += word;
        }
        assert_int_equal(seen, want.len / 2);
    }
}

static void tokens_become_the_text_again(void **state)
{
    (void)state;
    cleanup_buf struct buf text = golden_file("corpus.bin");
    cleanup_buf struct buf tokens = golden_file("tokens.bin");
    cleanup_buf struct buf back = BUF_INIT(1 << 20);
    cleanup_bpe struct bpe *b = open_golden();
    struct err err;
    size_t len;

    for (size_t i = 0; i < tokens.len / 2; i++) {
        const char *part = bpe_text(b, (int)golden_u16(&tokens, i), &len);
        assert_non_null(part);
        assert_int_equal(buf_append(&back, part, len, &err), 0);
    }
    assert_int_equal(back.len, text.len);
    assert_memory_equal(back.data, text.data, text.len);
    assert_null(bpe_text(b, 1201, &len));
    assert_null(bpe_text(b, -1, &len));
    assert_string_equal(bpe_text(b, 1200, &len), BPE_END_OF_TEXT);
}

/* The longest word: pairs in a heap, in well under a second. */
static void long_words(void **state)
{
    (void)state;
    cleanup_bpe struct bpe *b = open_golden();
    uint8_t *word = malloc(BPE_WORD_BYTES);
    uint16_t *token = calloc(BPE_WORD_BYTES, sizeof(*token));
    size_t bytes = 0;

    assert_true(word && token);
    for (size_t i = 0; i < BPE_WORD_BYTES; i++)
        word[i] = (uint8_t) "the license of them"[i % 19];
    size_t n = bpe_word(b, word, BPE_WORD_BYTES, token);
    assert_true(n < BPE_WORD_BYTES / 2);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *part = bpe_text(b, token[i], &len);
        assert_memory_equal(part, word + bytes, len);
        bytes += len;
    }
    assert_int_equal(bytes, BPE_WORD_BYTES);
    free(word);
    free(token);
}

static void bytes_are_their_own_tokens(void **state)
{
    (void)state;
    cleanup_bpe struct bpe *b = bpe_bytes();
    uint16_t token[4];
    size_t len;

    assert_int_equal(bpe_vocab(b), 256);
    assert_int_equal(bpe_end_of_text(b), -1);
    assert_int_equal(bpe_word(b, (const uint8_t *)"a\xff\0z", 4, token), 4);
    assert_true(token[0] == 'a' && token[1] == 255 && token[2] == 0 && token[3] == 'z');
    assert_memory_equal(bpe_text(b, 255, &len), "\xff", 1);
}

struct fixture {
    char vocab[64], merges[64];
    struct buf good_vocab;
};

static void put(const char *path, const char *text)
{
    struct err err;

    assert_int_equal(fs_write_atomic(path, text, strlen(text), &err), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char folder[] = "/tmp/test_bpe.XXXXXX";

    if (!f || !mkdtemp(folder))
        return -1;
    snprintf(f->vocab, sizeof(f->vocab), "%s/v", folder);
    snprintf(f->merges, sizeof(f->merges), "%s/m", folder);
    f->good_vocab = golden_file("vocab.json");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unlink(f->vocab);
    unlink(f->merges);
    f->vocab[strlen(f->vocab) - 2] = '\0';
    int rc = rmdir(f->vocab);
    buf_release(&f->good_vocab);
    free(f);
    return rc;
}

static void refuse(const struct fixture *f, const char *vocab, const char *merges, const char *want)
{
    struct err err = {0};

    put(f->vocab, vocab ? vocab : buf_str(&f->good_vocab));
    put(f->merges, merges ? merges : "");
    struct bpe *b = bpe_open(f->vocab, f->merges, &err);
    if (b || err.kind != ERR_INVALID || !strstr(err.msg, want))
        fail_msg("%s, %s: \"%s\", expected \"%s\"", vocab, merges, b ? "opened" : err.msg, want);
}

static void vocabularies_that_cannot_be(void **state)
{
    const struct fixture *f = *state;

    refuse(f, "", NULL, "v: not JSON");
    refuse(f, "[]", NULL, "v: expected an object");
    refuse(f, "{\"a\": 0, ", NULL, "v: not JSON");
    refuse(f, "{\"a\": -1}", NULL, "\"a\": expected a number from 0 on");
    refuse(f, "{\"a\": 65536}", NULL, "\"a\": 65536, expected a number below 65536");
    refuse(f, "{\"a\": 1, \"b\": 1}", NULL, "\"b\": 1: this number is given twice");
    refuse(f, "{\"a\": 1, \"a\": 2}", NULL, "\"a\": 2: this token is given twice");
    refuse(f, "{\"\": 1}", NULL, "expected 1..1024 of the characters");
    refuse(f, "{\"a b\": 1}", NULL, "expected 1..1024 of the characters");
    refuse(f, "{\"\xe6\x97\xa5\": 1}", NULL, "expected 1..1024 of the characters");
    refuse(f, "{\"a\": 1} x", NULL, "text after the JSON");
    refuse(f, "{\"a\": 1}", NULL, "no token for the byte 0x00, expected one for each");
    refuse(f, NULL, "#version: 0.2\na\n", "m:2: expected two tokens with a space between them");
    refuse(f, NULL, "t h e", "m:1: expected two tokens with a space between them, there are more");
    refuse(f, NULL, "\na \xc4", "m:2: expected two tokens");
    refuse(f, NULL, "qq a", "m:1: \"qq\" is no token of the vocabulary");
    refuse(f, NULL, "q %", "m:1: the merged token is not in the vocabulary");
    refuse(f, NULL, "\xc4\xa0 t\n\xc4\xa0 t\n", "m:2: this merge is given twice");
    struct err err;
    assert_null(bpe_open("/nonexistent/v", f->merges, &err));
    assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* As Notepad and PowerShell save them. */
static void files_with_a_byte_order_mark(void **state)
{
    const struct fixture *f = *state;
    cleanup_buf struct buf vocab = BUF_INIT(1 << 20);
    struct err err;

    refuse(f, NULL, "\xff\xfe#", "m: UTF-16 by its first two bytes, expected UTF-8");
    refuse(f, "\xfe\xff{", NULL, "v: UTF-16 by its first two bytes");
    assert_int_equal(buf_printf(&vocab, &err, "\xef\xbb\xbf%s", buf_str(&f->good_vocab)), 0);
    put(f->vocab, buf_str(&vocab));
    put(f->merges, "\xef\xbb\xbf#version: 0.2\r\n\xc4\xa0 t\r\n");
    cleanup_bpe struct bpe *b = bpe_open(f->vocab, f->merges, &err);
    if (!b)
        fail_msg("%s", err.msg);
}

static void a_fifo_that_nobody_writes_to(void **state)
{
    const struct fixture *f = *state;
    struct err err;

    put(f->merges, "");
    assert_int_equal(mkfifo(f->vocab, 0600), 0);
    alarm(20);
    assert_null(bpe_open(f->vocab, f->merges, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    put(f->vocab, buf_str(&f->good_vocab));
    assert_true(unlink(f->merges) == 0 && mkfifo(f->merges, 0600) == 0);
    assert_null(bpe_open(f->vocab, f->merges, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_those_of_tokenizers),
        cmocka_unit_test(tokens_become_the_text_again),
        cmocka_unit_test(long_words),
        cmocka_unit_test(bytes_are_their_own_tokens),
        cmocka_unit_test_setup_teardown(vocabularies_that_cannot_be, setup, teardown),
        cmocka_unit_test_setup_teardown(files_with_a_byte_order_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fifo_that_nobody_writes_to, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
