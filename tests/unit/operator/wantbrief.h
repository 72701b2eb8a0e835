/* wantbrief.h - test helper: a plan as a list of short lines in a golden file, and back; plan/README.md describes it.
 *
 * Ownership: trees are freed with cJSON_Delete.
 */
#ifndef TK_TESTS_OPERATOR_WANTBRIEF_H
#define TK_TESTS_OPERATOR_WANTBRIEF_H

#include "sentences.h"

/* `plan` is {actions: [...], requeueInMs...} as plancase.c makes it, `version` the job's resourceVersion. */
cJSON *want_shorten(const struct sentences *s, const cJSON *plan, const char *version);

/* NULL: a sentence is not in the table. */
cJSON *want_expand(const struct sentences *s, const cJSON *want, const char *version,
                   struct err *err) MUST_CHECK;

/* Whether it stands behind the actions, such as requeueInMs. */
bool want_is_flag(const char *key);

/* Each message of a plan in short form. */
void want_messages(const cJSON *want, void (*show)(void *ctx, const cJSON *message), void *ctx);

#endif
