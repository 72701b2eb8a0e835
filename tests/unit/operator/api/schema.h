/* schema.h - test helper: the CRD's schema, walked field by field.
 *
 * Ownership: paths and nodes borrow the schema; documents made here are freed with cJSON_Delete.
 * Errors:    a CRD that does not look like one fails the test.
 */
#ifndef TK_TESTS_OPERATOR_API_SCHEMA_H
#define TK_TESTS_OPERATOR_API_SCHEMA_H

#include "common/json.h"

enum { SCHEMA_DEPTH_MAX = 16, SCHEMA_PATH_BYTES = 256 };

/* A place in the schema: keys[0] is "spec" or "status"; NULL among the keys stands for "the items of". */
struct schema_field {
    const char *keys[SCHEMA_DEPTH_MAX];
    int n;
    const cJSON *schema;
    bool last; /* what is below is not described field by field */
};

cJSON *schema_read(const char *crd_path);

/* "spec" or "status" of the schema. */
const cJSON *schema_part(const cJSON *crd, const char *part);

/* Each field of the part, parents first; lists of scalars have their items as a field of their own. */
void schema_walk(const cJSON *crd, const char *part, void (*visit)(void *ctx, const struct schema_field *f),
                 void *ctx);

/* "spec.replicaSpecs[0].type" with index "[0]", "spec.replicaSpecs[].type" with "[]". */
void schema_path(const struct schema_field *f, const char *index, char out[SCHEMA_PATH_BYTES]);

const char *schema_type(const cJSON *schema); /* "object", "integer", ..., "int-or-string" */

/* x-kubernetes-validations with the rule "false": the API server refuses whatever stands there. */
bool schema_refuses(const cJSON *schema);

/* A value that fits the schema; all: with every member, else only with the required ones. */
cJSON *schema_sample(const cJSON *schema, bool all);

/* Put `value` (taken) at the field's place in `doc`, making what leads there; a switch `enabled` on the way is
 * turned on. */
void schema_put(cJSON *doc, const cJSON *crd, const struct schema_field *f, cJSON *value);

#endif
