/* encoder.c - split a stream of bytes into documents and words, and encode each word once its end is known. */
#include "tools/text/encoder.h"

#include "tools/text/words.h"

#include <stdlib.h>
#include <string.h>

/* Taken in at a time: the buffer holds a word and as much again. */
enum { PIECE = 1 << 16, MARK_BYTES = sizeof(BPE_END_OF_TEXT) - 1 };

int encoder_make(struct encoder *e, struct bpe *b, const struct encoder_sink *sink, bool marks,
                 struct err *err)
{
    *e = (struct encoder){
        .bpe = b, .sink = *sink, .marks = marks, .waiting = BUF_INIT(BPE_WORD_BYTES + 2 * PIECE)};
    if (marks && bpe_end_of_text(b) < 0)
        return err_set(err, ERR_INVALID, "the vocabulary has no " BPE_END_OF_TEXT);
    e->word = calloc(BPE_WORD_BYTES, sizeof(*e->word));
    return e->word ? 0 : err_memory(err, "no memory for words");
}

void encoder_release(struct encoder *e)
{
    buf_release(&e->waiting);
    free(e->word);
    e->word = NULL;
}

static int give(struct encoder *e, const uint16_t *tokens, size_t n, struct err *err)
{
    e->count += (int64_t)n;
    return e->sink.put(e->sink.ctx, tokens, n, err);
}

int encoder_begin(struct encoder *e, struct err *err)
{
    int mark = bpe_end_of_text(e->bpe);
    uint16_t token = (uint16_t)mark;

    return mark < 0 ? 0 : give(e, &token, 1, err);
}

/* The words of `len` waiting bytes, behind which the document goes on when `more`; *used says how many bytes they were. */
static int take_words(struct encoder *e, size_t len, bool more, size_t *used, struct err *err)
{
    const uint8_t *text = (const uint8_t *)buf_str(&e->waiting);
    size_t at = *used;

    while (at < len) {
        size_t n = words_next(text + at, len - at, more);
        if (n > BPE_WORD_BYTES || (!n && len - at > BPE_WORD_BYTES))
            return err_set(err, ERR_INVALID, "more than %d bytes without a boundary between words",
                           BPE_WORD_BYTES);
        if (!n)
            break;
        if (give(e, e->word, bpe_word(e->bpe, text + at, n, e->word), err))
            return -1;
        at += n;
    }
    *used = at;
    return 0;
}

/* Up to each mark a document ends. At the end some bytes wait, where a mark may have begun. */
static int take(struct encoder *e, bool more, struct err *err)
{
    size_t used = 0;

    while (e->marks) {
        const char *text = buf_str(&e->waiting);
        const char *mark = memmem(text + used, e->waiting.len - used, BPE_END_OF_TEXT, MARK_BYTES);
        if (!mark)
            break;
        if (take_words(e, (size_t)(mark - text), false, &used, err) || encoder_begin(e, err))
            return -1;
        used += MARK_BYTES;
    }
    size_t end = e->waiting.len;
    if (more && e->marks)
        end = end - used > MARK_BYTES ? end - MARK_BYTES : used;
    if (take_words(e, end, more, &used, err))
        return -1;
    buf_consume(&e->waiting, used);
    return 0;
}

int encoder_put(struct encoder *e, const void *bytes, size_t len, struct err *err)
{
    const char *p = bytes;

    e->bytes += (int64_t)len;
    while (len) {
        size_t n = len < PIECE ? len : PIECE;
        if (buf_append(&e->waiting, p, n, err) || take(e, true, err))
            return -1;
        p += n;
        len -= n;
    }
    return 0;
}

int encoder_end(struct encoder *e, struct err *err)
{
    return take(e, false, err);
}
