/* json.h - parse JSON within bounds, read cJSON trees with paths in the errors, and write them.
 *
 * Ownership: a `struct json_at` borrows its node and its parent; it lives on the reader's stack. Returned
 *            strings point into the tree.
 * Errors:    ERR_INVALID with "spec.replicas: expected an integer 1..1024, got \"a\""; outputs are untouched.
 * Order:     an absent member and an explicit null are the same: "not set". Reading one succeeds and does not
 *            change the output, so that the caller's initial value is the default. json_has returns whether
 *            it is set.
 */
#ifndef TK_COMMON_JSON_H
#define TK_COMMON_JSON_H

#include "common/arena.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* A position in a document: a node and the path to it. node NULL: absent. */
struct json_at {
    const cJSON *node;
    const struct json_at *parent; /* NULL at the root */
    const char *key;              /* member name, or NULL for an item */
    int index;                    /* item number when key is NULL */
};

enum {
    JSON_DEPTH_MAX = 64, /* nesting depth; a PodTemplateSpec needs about 12 */
    /* Values of one document. A job with 256 KiB of small variables, repeated in managedFields, and 1,024
     * replicas in its status has 75,000. A value needs at most 144 bytes of heap (node 80, name 32, text 32)
     * plus its strings beyond 24 bytes. So the tree of a text of N bytes needs at most 18 MiB + 1.1 N. */
    JSON_VALUES_MAX = 128 << 10,
    /* err.code of a text that is too deep, or has too many values, a NUL or a number too long. It may be valid
     * JSON. */
    JSON_UNREADABLE = 1,
};

/* From now on a failed allocation in cJSON ends the process, as for an arena. By default cJSON leaves the
 * member out, and we would send an incomplete document. For the whole process: main calls it before the first
 * tree exists. */
void json_memory_must(void);

/* Parse exactly `len` bytes. Refused: trailing text, nesting over JSON_DEPTH_MAX, more than JSON_VALUES_MAX
 * values, and a NUL character in a string, where cJSON would cut it. Numbers are doubles. Free with
 * cJSON_Delete. */
cJSON *json_parse(const char *text, size_t len, struct err *err) MUST_CHECK;

/* The same with another limit of nesting, for a document inside an envelope. */
cJSON *json_parse_within(const char *text, size_t len, int depth_max, struct err *err) MUST_CHECK;

static inline void json_deletep(cJSON **j)
{
    cJSON_Delete(*j);
}
#define cleanup_json __attribute__((cleanup(json_deletep)))

/* The position of the root. Errors begin with `name`, e.g. "spec" or "PyTorchTrainingJob ns/a". */
struct json_at json_root(const cJSON *node, const char *name);

/* A member of an object: node NULL when it is absent or null, or `at` is not an object. */
struct json_at json_member(const struct json_at *at, const char *key);

/* Item `index` of an array, whose node the caller has from cJSON_ArrayForEach. */
struct json_at json_item(const struct json_at *at, const cJSON *item, int index);

bool json_has(const struct json_at *at, const char *key);

/* The path as text, "a.b[2].c", cut to fit. */
void json_path(const struct json_at *at, char *out, size_t size);

/* Set ERR_INVALID: "<path>: <message>". Always -1. */
int json_err(const struct json_at *at, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Check the type of the node itself; an absent one passes. */
int json_expect_object(const struct json_at *at, struct err *err) MUST_CHECK;
int json_expect_array(const struct json_at *at, int max_items, struct err *err) MUST_CHECK;

/* Typed members; see Order for absent ones. Integers must be exact: 1.5 and 1e300 are refused. */
int json_get_str(const struct json_at *at, const char *key, const char **ret, struct err *err) MUST_CHECK;
int json_get_bool(const struct json_at *at, const char *key, bool *ret, struct err *err) MUST_CHECK;
int json_get_i64(const struct json_at *at, const char *key, int64_t min, int64_t max, int64_t *ret,
                 struct err *err) MUST_CHECK;
int json_get_i32(const struct json_at *at, const char *key, int32_t min, int32_t max, int32_t *ret,
                 struct err *err) MUST_CHECK;

/* Lookups without errors, for objects that the API server has validated. For an absent member, or one of
 * another type, they return NULL or the fallback. */
const cJSON *json_find(const cJSON *node, const char *const *keys); /* keys ends with NULL */
cJSON *json_child(const cJSON *node, const char *key);
const char *json_str(const cJSON *node, const char *key);
int64_t json_i64(const cJSON *node, const char *key, int64_t fallback);

/* json_str of an object's metadata: its name, its uid. */
const char *json_meta(const cJSON *object, const char *key);

/* Set a member in place of the one that is there; NULL: remove it. `value` then belongs to the object. */
void json_set(cJSON *object, const char *key, cJSON *value);

/* Add a time as RFC 3339, in seconds; nothing if it is 0 or before. */
void json_add_time(cJSON *object, const char *key, int64_t wall_ms);

/* The first item of a list whose member `key` has this text; NULL: there is none. */
cJSON *json_item_with(const cJSON *list, const char *key, const char *value);

/* Whether it is a number below 2^53; a larger integer may have been rounded. */
bool json_is_exact(const cJSON *node);

/* The node's own value; the fallback unless it is an integer that a double holds exactly. */
int64_t json_exact_i64(const cJSON *node, int64_t fallback);

/* Append compact JSON. Numbers read back as the same double. 64-bit integers have no exponent (cJSON's
 * printer writes 1e15 as "1e+15", which the API server refuses for an integer field). A cJSON_Raw is copied
 * verbatim. ERR_INVALID: a NAN. */
int json_write(const cJSON *node, struct buf *out, struct err *err) MUST_CHECK;

/* Append `s` as a JSON string, in quotes. */
int json_write_string(const char *s, struct buf *out, struct err *err) MUST_CHECK;

/* Like json_write, into an arena. */
char *json_print(const cJSON *node, struct arena *a);

/* A hash of the content. It does not depend on the order of members, since servers sort them; it depends on
 * the order of items. Numbers count by value. Not for input chosen to collide. */
uint64_t json_hash(const cJSON *node);

#endif
