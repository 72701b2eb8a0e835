/* wantbrief.h - test helper: a plan as a list of short lines in a golden file; plan/README.md describes it.
 *
 * Ownership: trees are freed with cJSON_Delete.
 */
#ifndef TK_TESTS_OPERATOR_WANTBRIEF_H
#define TK_TESTS_OPERATOR_WANTBRIEF_H

#include "sentences.h"

/* `plan` is {actions: [...], requeueInMs...} as plancase.c makes it, `version` the job's resourceVersion. */
cJSON *want_shorten(const struct sentences *s, const cJSON *plan, const char *version);

/* Each message of a plan in short form. */
void want_messages(const cJSON *want, void (*show)(void *ctx, const cJSON *message), void *ctx);

#endif
