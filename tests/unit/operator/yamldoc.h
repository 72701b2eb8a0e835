/* yamldoc.h - test helper: small YAML files as cJSON trees, and back.
 *
 * Ownership: trees are freed with cJSON_Delete.
 * Errors:    ERR_INVALID with file and line. One document, no aliases, plain scalars as JSON where they can
 *            be.
 */
#ifndef TK_TESTS_OPERATOR_YAMLDOC_H
#define TK_TESTS_OPERATOR_YAMLDOC_H

#include "common/json.h"

cJSON *yamldoc_read(const char *path, struct err *err) MUST_CHECK;

/* The job of a file, as the API server hands it out. */
cJSON *yamldoc_job(const char *path, struct err *err) MUST_CHECK;

/* What fits into 132 columns stands in one line, but of several objects in a list each has its own. */
int yamldoc_write(const cJSON *node, struct buf *out, struct err *err) MUST_CHECK;

/* The same for a list of objects at the top of a document, "key:" and its items. */
int yamldoc_write_list(const char *key, const cJSON *list, struct buf *out, struct err *err) MUST_CHECK;

/* Merge `patch` into *to as RFC 7386 specifies. */
void yamldoc_merge(cJSON *to, const cJSON *patch);

/* For each node of the tree and each kind of nonsense: a copy of the tree with the node turned into it.
 * Returns how many copies were shown. */
int yamldoc_spoil(cJSON *root, void (*show)(void *ctx, const cJSON *spoiled), void *ctx);

#endif
