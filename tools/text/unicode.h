/* unicode.h - decode UTF-8 and tell letters, numbers and spaces apart, as GPT-2's tokenizer needs. Pure.
 *
 * Unicode 16.0: the version that tiktoken 0.14 goes by. A space is a character of the property White_Space, a letter or a
 * number one of the general categories L and N.
 */
#ifndef TK_TOOLS_TEXT_UNICODE_H
#define TK_TOOLS_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

enum unicode_kind { UNICODE_OTHER, UNICODE_SPACE, UNICODE_LETTER, UNICODE_NUMBER };

struct unicode_range {
    uint32_t first, last;
};

extern const struct unicode_range UNICODE_LETTERS[], UNICODE_NUMBERS[];
extern const size_t UNICODE_LETTERS_LEN, UNICODE_NUMBERS_LEN;

enum unicode_kind unicode_kind(uint32_t code);

/* The character at p (len bytes, at least one): its bytes, 0 when it may go on behind them. A byte that begins no
 * character is one of its own, UNICODE_OTHER. */
size_t unicode_next(const uint8_t *p, size_t len, enum unicode_kind *ret);

#endif
