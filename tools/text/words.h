/* words.h - split text into the words that GPT-2's byte-pair encoding works on. Pure.
 *
 * They are the matches of the pattern of GPT-2's encoder.py,
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * with the kinds of unicode.h. Together they are the text. Bytes that are not UTF-8 count as [^\s\p{L}\p{N}].
 */
#ifndef TK_TOOLS_TEXT_WORDS_H
#define TK_TOOLS_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the first piece of a text that goes on behind `len` bytes when `more`; 0: more must be seen to know. */
size_t words_next(const uint8_t *p, size_t len, bool more);

#endif
