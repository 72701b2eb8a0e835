/* questions_state.h - what questions.c and question_lines.c share. Nobody else includes it. */
#ifndef TK_TRAINER_GENERATE_QUESTIONS_STATE_H
#define TK_TRAINER_GENERATE_QUESTIONS_STATE_H

#include "common/arena.h"
#include "common/buf.h"
#include "trainer/generate/questions.h"

struct questions {
    const char *path; /* borrowed while they are read */
    int64_t limit;    /* 0: none */
    struct choice_question *question;
    int64_t count, cap;
    struct buf file;    /* a .bin file's bytes */
    struct arena arena; /* tokens of lines */
    size_t tokens;      /* of them */
};

bool questions_enough(const struct questions *q);
int questions_add(struct questions *q, const struct choice_question *more, struct err *err) MUST_CHECK;

int questions_read_lines(struct questions *q, struct bpe *bpe, struct err *err) MUST_CHECK;

#endif
