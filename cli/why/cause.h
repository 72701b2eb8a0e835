/* cause.h - the table of causes for `kubectl ptj why`: how each is recognised, and what it is called. Pure.
 *
 * Ownership: causes are static.
 */
#ifndef TK_CLI_WHY_CAUSE_H
#define TK_CLI_WHY_CAUSE_H

#include "cli/why/finding.h"

/* Texts may hold {pod}, {container}, {job}, {ns}, {rank}, {code}, {limit} (of memory), {subject}, {with} (options). Of what is not
 * known nothing is printed: {[space]node}, {[space]container}, and the commands {describe}, {delete} of the node, with "." where they
 * end the text. */
struct cause {
    enum why_kind kind;
    const char *reasons; /* separated by spaces, one that ends with * for all that begin so; NULL: any */
    int codes[4];        /* exit codes; 0 ends them */
    /* With another exit code, some of these is in the text, whatever the case of its letters; NULL ends them. With neither codes nor
     * texts any will do. */
    const char *texts[6];
    const char *subject; /* behind this in the text the name of the object in question begins; NULL: none */
    const char *headline;
    const char *next; /* what the operator does; NULL: what it does of this kind (next.c) */
    const char *todo;
};

/* The first row that fits; there is always one. */
const struct cause *cause_of(const struct finding *g);

/* What stands behind the cause's `subject` in the text, to the quote or space; "" for none. */
const char *cause_subject(const struct cause *c, const struct finding *g, struct arena *a);

#endif
