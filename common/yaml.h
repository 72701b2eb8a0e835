/* yaml.h - a small YAML document as a tree; errors contain line and path.
 *
 * It accepts what kubectl accepts: mappings, sequences, scalars; aliases and the merge key <<, which it
 * expands; byte order marks, and UTF-16 with a mark. It refuses tags (except !!str), duplicate keys, a <<
 * after a key that it also has, documents beyond the limits below (after expansion), and, except in
 * yaml_documents, several documents in one file.
 *
 * Ownership: the tree lives in the arena given; a `struct yaml_at` borrows node, parent and key on the
 *            reader's stack.
 * Errors:    ERR_INVALID "net.yaml:12: model.layers[3].kernel: expected an integer 1..64, got \"a\""; outputs
 *            untouched.
 * Order:     an absent key and an explicit null are the same: "not set". Reading one succeeds and leaves the
 *            output as it was, so the caller's initial value is the default.
 */
#ifndef TK_COMMON_YAML_H
#define TK_COMMON_YAML_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YAML_TREE_BYTES_MAX = 1 << 20, YAML_TREE_DEPTH_MAX = 32, YAML_TREE_NODES_MAX = 16384 };

enum yaml_tree_kind { YAML_TREE_SCALAR, YAML_TREE_SEQUENCE, YAML_TREE_MAPPING };

struct yaml_tree {
    enum yaml_tree_kind kind;
    int line;                /* from 1 */
    const char *key;         /* in a mapping; else NULL */
    const char *text;        /* of a scalar, never NULL there */
    bool quoted;             /* a scalar in quotes is text, never a number, bool or null */
    bool merged;             /* it came from <<: a key of the mapping itself replaces it */
    struct yaml_tree *first; /* children in the order of the file */
    struct yaml_tree *next;
};

/* Parse the only document of `text`. `file` is its name in errors (kept by reference). */
int yaml_tree_parse(const char *file, const char *text, size_t len, struct arena *a, struct yaml_tree **ret,
                    struct err *err) MUST_CHECK;

/* All documents of a file that separates them with "---", linked by `next`, without empty ones. NULL: none.
 * The limits of one document hold for all together. */
int yaml_documents(const char *file, const char *text, size_t len, struct arena *a, struct yaml_tree **ret,
                   struct err *err) MUST_CHECK;

/* A plain scalar that is empty, ~ or null (Null, NULL). */
bool yaml_is_null(const struct yaml_tree *node);

/* The same data as JSON. Free it with cJSON_Delete. Types follow kubectl: plain null, decimal and octal
 * (0644, 0o644) numbers, booleans (true, yes, on and their opposites, in lower case, capitalised or in
 * capitals); every other scalar is a string. Nodes other than numbers have their line in valueint. */
cJSON *yaml_json(const struct yaml_tree *node);

/* A position in the document. node NULL: absent. */
struct yaml_at {
    const struct yaml_tree *node;
    const struct yaml_at *parent; /* NULL at the root */
    const char *key;              /* of a member; NULL for an item */
    int index;                    /* of an item */
    const char *file;
};

struct yaml_at yaml_root(const char *file, const struct yaml_tree *node);
struct yaml_at yaml_member(const struct yaml_at *at, const char *key);
struct yaml_at yaml_item(const struct yaml_at *at, const struct yaml_tree *item, int index);

/* ERR_INVALID naming file, line and path. Always -1. */
int yaml_err(const struct yaml_at *at, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The node must be a mapping with no other keys than these (NULL ends the list). An absent node is accepted. */
int yaml_expect_mapping(const struct yaml_at *at, const char *const *keys, struct err *err) MUST_CHECK;

/* The node must be a sequence of min..max items. An absent node counts as an empty one. */
int yaml_expect_sequence(const struct yaml_at *at, int min, int max, struct err *err) MUST_CHECK;

/* Typed members. Ranges include both ends. */
int yaml_get_i64(const struct yaml_at *at, const char *key, int64_t min, int64_t max, int64_t *ret,
                 struct err *err) MUST_CHECK;
int yaml_get_f64(const struct yaml_at *at, const char *key, double min, double max, double *ret,
                 struct err *err) MUST_CHECK;
int yaml_get_str(const struct yaml_at *at, const char *key, size_t max_len, const char **ret,
                 struct err *err) MUST_CHECK;

/* true or false. */
int yaml_get_bool(const struct yaml_at *at, const char *key, bool *ret, struct err *err) MUST_CHECK;

/* The same for an item, which is not absent: null is an error. */
int yaml_item_i64(const struct yaml_at *item, int64_t min, int64_t max, int64_t *ret,
                  struct err *err) MUST_CHECK;
int yaml_item_f64(const struct yaml_at *item, double min, double max, double *ret,
                  struct err *err) MUST_CHECK;
int yaml_item_choice(const struct yaml_at *item, const char *const *names, int *ret,
                     struct err *err) MUST_CHECK;

/* One of `names` (NULL ends the list); *ret is its index in the list. */
int yaml_get_choice(const struct yaml_at *at, const char *key, const char *const *names, int *ret,
                    struct err *err) MUST_CHECK;

/* The member must be present. */
int yaml_require(const struct yaml_at *at, const char *key, struct err *err) MUST_CHECK;

#endif
