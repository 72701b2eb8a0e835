/* encoder.h - encode documents as tokens while their bytes are read, for `trainer tokenize`.
 *
 * Ownership: borrows the vocabulary and the sink; encoder_release frees what waits.
 * Order:     a document's end-of-text token stands before it, where the vocabulary has one, as in llm.c's and
 *            build-nanogpt's shards. Begin, put any number of times, end.
 * Errors:    ERR_INVALID (a word of over BPE_WORD_BYTES), else the sink's own.
 */
#ifndef TK_TOOLS_TEXT_ENCODER_H
#define TK_TOOLS_TEXT_ENCODER_H

#include "common/buf.h"
#include "tools/text/bpe.h"

#include <stdbool.h>

struct encoder_sink {
    int (*put)(void *ctx, const uint16_t *tokens, size_t n, struct err *err);
    void *ctx;
};

struct encoder {
    struct bpe *bpe;
    struct encoder_sink sink;
    bool marks;         /* the text <|endoftext|> in a document ends it and begins another; else it is text */
    struct buf waiting; /* what cannot be told yet */
    uint16_t *word;     /* (BPE_WORD_BYTES) */
    int64_t bytes, count; /* so far: bytes taken, tokens given */
};

int encoder_make(struct encoder *e, struct bpe *b, const struct encoder_sink *sink, bool marks,
                 struct err *err) MUST_CHECK;
void encoder_release(struct encoder *e);
#define cleanup_encoder __attribute__((cleanup(encoder_release)))

int encoder_begin(struct encoder *e, struct err *err) MUST_CHECK;
int encoder_put(struct encoder *e, const void *bytes, size_t len, struct err *err) MUST_CHECK;
int encoder_end(struct encoder *e, struct err *err) MUST_CHECK;

#endif
