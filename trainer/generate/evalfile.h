/* evalfile.h - the bytes of llm.c's files of questions, as its dev/data writes HellaSwag and MMLU. Pure.
 *
 * Format:    256 int32, of which 20240522, version 1 and the number of questions; then for each question uint16: 65535, its
 *            bytes (these words too), its number, the right ending's, how many endings there are, then the context and each
 *            ending: how many tokens, and the tokens. (llm.c: dev/data/data_common.py, write_evalfile)
 * Ownership: what is read points into the bytes, which must be aligned to two.
 * Errors:    ERR_INVALID: "<path>: <place>: <field>: <value>, expected ...".
 */
#ifndef TK_TRAINER_GENERATE_EVALFILE_H
#define TK_TRAINER_GENERATE_EVALFILE_H

#include "trainer/generate/choice.h"

enum {
    EVALFILE_MAGIC = 20240522,
    EVALFILE_VERSION = 1,
    EVALFILE_HEADER = 1024,
    EVALFILE_COUNT_MAX = 65536, /* a question's number has 16 bits */
};

struct evalfile {
    const char *path;
    const uint16_t *word; /* behind the header */
    size_t words, at;
    int64_t count, next; /* questions: all, and the number of the one that stands at `at` */
};

int evalfile_open(struct evalfile *f, const char *path, const void *bytes, size_t len,
                  struct err *err) MUST_CHECK;

/* The next question; *ret_more false: there is none, and nothing is left over. */
int evalfile_next(struct evalfile *f, struct choice_question *q, bool *ret_more, struct err *err) MUST_CHECK;

#endif
