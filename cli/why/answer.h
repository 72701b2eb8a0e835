/* answer.h - what `kubectl ptj why` answers, in sentences: the cause, what the operator does next, what the user can do. Pure.
 *
 * Ownership: borrows from the facts, lives in the arena.
 */
#ifndef TK_CLI_WHY_ANSWER_H
#define TK_CLI_WHY_ANSWER_H

#include "cli/why/cause.h"

enum { ANSWER_NOTES_MAX = 4 + JOBSTATUS_AVOIDED_MAX, ANSWER_LOG_LINES = 78 };

struct answer {
    const struct yaml_tree *causes; /* the table */
    struct finding finding;
    const struct cause *cause; /* NULL: nothing keeps the job from going on */
    const char *summary;       /* the cause in a sentence, or how a healthy job is */
    const char *subject;       /* the object in question: a PVC, a Secret; "" */
    const char *detail;        /* of a healthy job: how far it is, or which pod it waits for; else "" */
    const char *operator_next; /* "" of a healthy job */
    const char *todo, *then;   /* then: ""  */
    const char *log;           /* what the programs wrote at the end; "" */
    const char *notes[ANSWER_NOTES_MAX];
    int n_notes;
};

/* What the operator does next (next.c): the end of a sentence about it, with placeholders as in causes.yaml, never NULL. In the arena or
 * static. */
const char *next_of(const struct why_facts *f, const struct finding *g, const struct cause *c,
                    struct arena *a);

/* A duration, rounded down, of at most two units: "3m", "2h5m", "45s", "4d1h"; below a second "0s". */
const char *next_span(int64_t ms, struct arena *a);

struct answer answer_of(const struct why_facts *f, struct arena *a);

#endif
