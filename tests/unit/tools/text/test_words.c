/* test_words.c - kinds of characters as tiktoken knows them, words as tokenizers cuts them, and what a cut text tells. */
#include "test.h"

#include "golden.h"
#include "tools/text/unicode.h"
#include "tools/text/words.h"

#include <string.h>
#include <zlib.h>

/* Every character there is. */
static void kinds_are_tiktokens(void **state)
{
    (void)state;
    cleanup_buf struct buf want = golden_file("kinds.txt");
    char text[64];
    int number[4] = {0};
    uLong crc = crc32(0, NULL, 0);

    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        uint8_t kind = (uint8_t)unicode_kind(c);
        number[kind]++;
        crc = crc32(crc, &kind, 1);
    }
    snprintf(text, sizeof(text), "%d %d %d %08lx\n", number[UNICODE_SPACE], number[UNICODE_LETTER],
             number[UNICODE_NUMBER], crc);
    assert_string_equal(text, buf_str(&want));
}

static size_t encode(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    out[0] = (uint8_t)((0xf00 >> n & 0xff) | c >> (6 * (n - 1)));
    for (size_t i = 1; i < n; i++)
        out[i] = (uint8_t)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
    return n;
}

static void decodes_all_characters(void **state)
{
    (void)state;
    uint8_t text[4];
    enum unicode_kind kind;

    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t n = encode(c, text);
        assert_int_equal(unicode_next(text, n, &kind), n);
        assert_int_equal(kind, unicode_kind(c));
        for (size_t cut = 1; cut < n; cut++)
            assert_int_equal(unicode_next(text, cut, &kind), 0);
    }
}

/* Each of its bytes is a character of no kind: overlong, surrogates, beyond U+10FFFF, continuations alone. */
static void damage_is_bytes(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80", "\x80",     "\xff",         "\xe4\x61\x61", "\xc3\x20"};

    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        enum unicode_kind kind = UNICODE_LETTER;
        assert_int_equal(unicode_next((const uint8_t *)damaged[i], strlen(damaged[i]), &kind), 1);
        assert_int_equal(kind, UNICODE_OTHER);
    }
}

static void words_are_those_of_tokenizers(void **state)
{
    (void)state;
    cleanup_buf struct buf text = golden_file("corpus.bin");
    cleanup_buf struct buf want = golden_file("words.bin");
    const uint8_t *p = (const uint8_t *)text.data;
    size_t at = 0;

    for (size_t i = 0; i < want.len / 2; i++) {
        size_t n = words_next(p + at, text.len - at, false);
        if (n != golden_u16(&want, i))
            fail_msg("word %zu, byte %zu: %zu bytes, expected %u", i, at, n, golden_u16(&want, i));
        at += n;
    }
    assert_int_equal(at, text.len);
}

/* Whatever part of the text is seen: either the word's end is known, and right, or more must be seen. */
static void a_cut_text_never_misleads(void **state)
{
    (void)state;
    cleanup_buf struct buf text = golden_file("corpus.bin");
    const uint8_t *p = (const uint8_t *)text.data;
    size_t word = 0;

    for (size_t at = 0; at < text.len; at += word) {
        word = words_next(p + at, text.len - at, false);
        size_t most = text.len - at < word + 8 ? text.len - at : word + 8;
        for (size_t cut = word > 8 ? word - 8 : 0; cut <= most; cut++) {
            /* A copy, so that a look behind its end is seen by the sanitizers. */
            uint8_t *part = malloc(cut + 1);
            memcpy(part, p + at, cut);
            uint8_t *exact = realloc(part, cut ? cut : 1);
            size_t n = words_next(exact, cut, true);
            free(exact);
            if (n && n != word)
                fail_msg("byte %zu, %zu bytes seen: a word of %zu, expected %zu", at, cut, n, word);
            if (!n && cut >= word + 3 + 4) /* a space and the character behind it */
                fail_msg("byte %zu, %zu bytes seen: the word of %zu is not known yet", at, cut, word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_tiktokens),       cmocka_unit_test(decodes_all_characters),
        cmocka_unit_test(damage_is_bytes),           cmocka_unit_test(words_are_those_of_tokenizers),
        cmocka_unit_test(a_cut_text_never_misleads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
