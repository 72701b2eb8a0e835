/* bpe.h - GPT-2's byte-pair encoding: encode words as tokens and decode tokens to bytes, with a vocabulary read from two
 * files.
 *
 * Format:    encoder.json (or vocab.json): {"token": number, ...}, vocab.bpe (or merges.txt): a merge "left right" per
 *            line, the first the strongest, behind a line that begins with #version. In both a byte is written as one
 *            character, as encoder.py's bytes_to_unicode has it.
 * Ownership: bpe_open makes, bpe_free frees; the text of a token points into the vocabulary.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID ("<path>: <place>: <what stands there>, expected ..."), ERR_FATAL.
 */
#ifndef TK_TOOLS_TEXT_BPE_H
#define TK_TOOLS_TEXT_BPE_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    BPE_VOCAB_MAX = 65536,  /* a shard's tokens are uint16 */
    BPE_TOKEN_BYTES = 1024, /* of one */
    BPE_WORD_BYTES = 1 << 20,
};
#define BPE_END_OF_TEXT "<|endoftext|>"

struct bpe;

struct bpe *bpe_open(const char *vocab_path, const char *merges_path, struct err *err);

/* Every byte is a token, of its own number: 256, and none ends a text. */
struct bpe *bpe_bytes(void);
void bpe_free(struct bpe *b);

static inline void bpe_freep(struct bpe **b)
{
    bpe_free(*b);
}
#define cleanup_bpe __attribute__((cleanup(bpe_freep)))

int bpe_vocab(const struct bpe *b);       /* tokens are below it */
int bpe_end_of_text(const struct bpe *b); /* its token; -1: there is none */

/* One word (words.h) of 1..BPE_WORD_BYTES bytes: writes as many tokens at most, returns how many. One thread at a time. */
size_t bpe_word(struct bpe *b, const uint8_t *word, size_t len, uint16_t *out);

/* A token's bytes; NULL and 0: there is no such token. */
const char *bpe_text(const struct bpe *b, int token, size_t *ret_len);

#endif
