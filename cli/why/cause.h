/* cause.h - the table of causes for `kubectl ptj why` (causes.yaml): which one a finding has. Pure.
 *
 * Ownership: the table, its rows and their texts live in the arena of causes_read.
 */
#ifndef TK_CLI_WHY_CAUSE_H
#define TK_CLI_WHY_CAUSE_H

#include "cli/why/finding.h"
#include "common/yaml.h"

/* A row; NULL, 0: not given. */
struct cause {
    const char *reasons;
    int64_t code;
    const struct yaml_tree *texts; /* the first of them */
    const char *subject, *headline, *next, *todo;
};

/* The names of the kinds, by enum why_kind; NULL ends them. */
extern const char *const CAUSE_KINDS[];

const struct yaml_tree *causes_read(struct arena *a);

/* The row of the finding's kind that fits (causes.yaml says which); there is always one, unless it is WHY_HEALTHY. */
const struct cause *cause_of(const struct yaml_tree *causes, const struct finding *g, struct arena *a);

/* What stands behind the cause's `subject` in the text, to the quote, space or colon; "" for none. */
const char *cause_subject(const struct cause *c, const struct finding *g, struct arena *a);

#endif
