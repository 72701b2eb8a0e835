/* statusbrief.h - test helper: a job's status from its short form in a golden file, and back; plan/README.md describes it.
 *
 * Ownership: trees are freed with cJSON_Delete. Both change the tree that they are given.
 * Errors:    ERR_INVALID: a message names a sentence that is not in the table.
 */
#ifndef TK_TESTS_OPERATOR_STATUSBRIEF_H
#define TK_TESTS_OPERATOR_STATUSBRIEF_H

#include "sentences.h"

/* From the short form to what the API server would hold. */
int status_expand(const struct sentences *s, cJSON *status, struct err *err) MUST_CHECK;

/* The other way. Of a status of an unusual shape it has less: expanded again it is another one. */
void status_shorten(const struct sentences *s, cJSON *status);

/* Each message of a status in short form. */
void status_messages(const cJSON *status, void (*show)(void *ctx, const cJSON *message), void *ctx);

/* All texts of the tree that are a time of the first day: "00:10:00" is 2026-01-01T00:10:00Z. */
void times_expand(cJSON *node);
void times_shorten(cJSON *node);

#endif
