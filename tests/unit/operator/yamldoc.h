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

/* Block style; strings are quoted as JSON. */
int yamldoc_write(const cJSON *node, struct buf *out, struct err *err) MUST_CHECK;

/* Merge `patch` into *to as RFC 7386 says. */
void yamldoc_merge(cJSON *to, const cJSON *patch);

/* For each node of the tree and each kind of nonsense: a copy of the tree with the node turned into it.
 * Returns how many copies were shown. */
int yamldoc_spoil(cJSON *root, void (*show)(void *ctx, const cJSON *spoiled), void *ctx);

#endif
