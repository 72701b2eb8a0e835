/* questions.h - questions with several endings, HellaSwag's and its like, read from a file as tokens.
 *
 * Formats:   by the file's name: .bin is llm.c's (evalfile.h), of tokens already. Any other has a question per line,
 *            gzip-compressed or not: {"ctx": TEXT, "endings": [TEXT, ...], "label": NUMBER from 0}; other fields are passed
 *            over, empty lines too, and a space is put before each ending.
 * Ownership: questions_open makes, questions_free frees; a question points into them.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID ("<path>:<line>: ..." or as evalfile.h says), ERR_FATAL.
 */
#ifndef TK_TRAINER_GENERATE_QUESTIONS_H
#define TK_TRAINER_GENERATE_QUESTIONS_H

#include "trainer/generate/choice.h"
#include "trainer/text/bpe.h"

enum {
    QUESTIONS_MAX = 65536,
    QUESTIONS_BYTES_MAX = 1 << 28, /* of a .bin file, or of all tokens */
    QUESTIONS_LINE_BYTES = 1 << 18,
};

struct questions;

/* The first `limit` of them, 0: all; at least one. bpe: makes tokens of text, and may be NULL for a .bin file alone. */
struct questions *questions_open(const char *path, struct bpe *bpe, int64_t limit,
                                 struct err *err) MUST_CHECK;
void questions_free(struct questions *q);

static inline void questions_freep(struct questions **q)
{
    questions_free(*q);
}
#define cleanup_questions __attribute__((cleanup(questions_freep)))

/* By its name: a .bin file. */
bool questions_are_tokens(const char *path);

int64_t questions_count(const struct questions *q);

/* Question i, 0..count-1. */
const struct choice_question *questions_at(const struct questions *q, int64_t i);

/* May a model of that many tokens and positions be asked all of them? ERR_INVALID names the first that it may not. */
int questions_check(const struct questions *q, int vocab, int positions, struct err *err) MUST_CHECK;

#endif
