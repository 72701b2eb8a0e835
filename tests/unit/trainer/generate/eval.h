/* eval.h - llm.c's files of questions, written word by word. */
#ifndef TK_TESTS_EVAL_H
#define TK_TESTS_EVAL_H

#include "common/buf.h"

#include <stdint.h>
#include <string.h>

static inline void eval_word(struct buf *file, int word)
{
    const uint8_t bytes[] = {(uint8_t)word, (uint8_t)(word >> 8)};
    struct err err;

    (void)!buf_append(file, bytes, sizeof(bytes), &err);
}

/* The header, for so many. */
static inline void eval_begin(struct buf *file, int count)
{
    const uint8_t header[1024] = {0x8a, 0xd8, 0x34, 0x01, 1, 0, 0, 0, (uint8_t)count, (uint8_t)(count >> 8)};
    struct err err;

    buf_clear(file);
    (void)!buf_append(file, header, sizeof(header), &err);
}

/* text[0] is the context, the others are endings; a byte is a token. */
static inline void eval_add(struct buf *file, int number, int answer, int texts, const char *const *text)
{
    size_t words = 5;

    for (int i = 0; i < texts; i++)
        words += 1 + strlen(text[i]);
    eval_word(file, 65535);
    eval_word(file, (int)(2 * words));
    eval_word(file, number);
    eval_word(file, answer);
    eval_word(file, texts - 1);
    for (int i = 0; i < texts; i++) {
        eval_word(file, (int)strlen(text[i]));
        for (const char *p = text[i]; *p; p++)
            eval_word(file, (uint8_t)*p);
    }
}

#endif
