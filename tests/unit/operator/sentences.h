/* sentences.h - test helper: the table of all sentences that plan/ writes (tests/golden/plan/_sentences.yaml).
 *
 * A sentence in a case is [key, what stands for each {}...]; an argument may be a sentence again. Any other text stands for
 * itself.
 * Ownership: the table lives in its arena; nodes are freed with cJSON_Delete.
 */
#ifndef TK_TESTS_OPERATOR_SENTENCES_H
#define TK_TESTS_OPERATOR_SENTENCES_H

#include "common/arena.h"
#include "common/json.h"

struct sentence {
    const char *key;
    const char *
        text; /* with {n#}: a number, {word}, {Word}: in CamelCase, {text...}: anything, or another sentence */
    bool produced; /* by some case, see sentences_note */
};

struct sentences {
    struct arena arena;
    struct sentence *items;
    int n;
};

int sentences_read(const char *path, struct sentences *ret, struct err *err) MUST_CHECK;
void sentences_free(struct sentences *s);

/* The text that the node stands for. NULL: the table has no such key, or the number of arguments differs. */
const char *sentences_text(const struct sentences *s, const cJSON *node, struct arena *a,
                           struct err *err) MUST_CHECK;

/* The node that stands for the text: a sentence of the table, else the text itself. */
cJSON *sentences_node(const struct sentences *s, const char *text);

/* Mark the entries that the node names as produced. */
void sentences_note(struct sentences *s, const cJSON *node);

/* The first part of the node that stands for itself and is made of other words than `known`; NULL: there is none. One word
 * needs no table. */
const char *sentences_unknown(const cJSON *node, const char *known);

#endif
