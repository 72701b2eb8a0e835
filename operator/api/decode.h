/* decode.h - strict decoding of JSON for the files of api/: only known members and words, with limits of
 * length.
 *
 * Errors:    ERR_INVALID with the path, as in common/json.h.
 */
#ifndef TK_OPERATOR_API_DECODE_H
#define TK_OPERATOR_API_DECODE_H

#include "common/json.h"

struct opt_i64 {
    bool set;
    int64_t v;
};

/* Limits of strings from other writers, by their grammar: a DNS subdomain, a DNS label or a label's value, a
 * UID (36 characters from the API server), a resourceVersion (a number of etcd), a machine-readable reason,
 * the error of an unreadable object. */
enum {
    DECODE_NAME_BYTES = 253,
    DECODE_LABEL_BYTES = 63,
    DECODE_UID_BYTES = 64,
    DECODE_VERSION_BYTES = 31,
    DECODE_REASON_BYTES = 128,
    DECODE_UNREADABLE_BYTES = 240,
};

/* Names in `metadata`. ERR_INVALID when one is missing or longer than its limit. Only the version may be
 * missing; it is "" then. */
struct object_names {
    const char *ns, *name, *uid, *version;
};
int decode_names(const cJSON *metadata, const char *kind, struct object_names *ret,
                 struct err *err) MUST_CHECK;

/* Check that each member of the object `at` is in `known`. The error for a member in `refused` is "not
 * supported by this version", for any other "unknown field". Both lists end with NULL; `refused` may be NULL.
 * An absent `at` is accepted. */
int decode_members(const struct json_at *at, const char *const *known, const char *const *refused,
                   struct err *err) MUST_CHECK;

/* Refuse numbers anywhere in `at` that cJSON may have rounded: the pod would get another number. */
int decode_numbers(const struct json_at *at, struct err *err) MUST_CHECK;

/* The index in `words`, which ends with NULL; -1: it is not there. Both may be NULL. */
int decode_index(const char *const *words, const char *s);

/* A member, for json_err, which needs no node. */
#define DECODE_AT(parent, key) (&(struct json_at){NULL, (parent), (key), 0})

/* Decode one of `words` (ends with NULL); *ret is its index. Absent: *ret is unchanged. */
int decode_word(const struct json_at *at, const char *key, const char *const *words, int *ret,
                struct err *err) MUST_CHECK;

int decode_opt_i64(const struct json_at *at, const char *key, int64_t min, int64_t max, struct opt_i64 *ret,
                   struct err *err) MUST_CHECK;

/* Decode a string of at most max_bytes, borrowed from the tree. Absent: *ret is unchanged. */
int decode_text(const struct json_at *at, const char *key, size_t max_bytes, const char **ret,
                struct err *err) MUST_CHECK;

/* The next item of a list: for (struct json_at item = {0}; decode_next(&list, &item);). */
bool decode_next(const struct json_at *list, struct json_at *item);

/* Decode a list of strings of at most max_bytes each, borrowed from the tree; the array lives in the
 * arena. */
int decode_strings(const struct json_at *at, const char *key, int max_items, size_t max_bytes,
                   struct arena *a, const char *const **ret, int *ret_n, struct err *err) MUST_CHECK;

/* A copy of the struct `from` in one block of memory together with the strings that `fields` point to, which are members of
 * it. They change to those of the copy. Free it with free(). */
void *decode_pack(const void *from, size_t size, const char **const *fields, size_t n);

/* A member with a time, as milliseconds since 1970. 0: there is none, it is no RFC 3339, or before 1970, as Go's zero time. */
int64_t decode_instant(const cJSON *node, const char *key);

/* Whether it is a DNS-1123 label of at most `max` characters; with letter_first a DNS-1035 label. */
bool decode_is_dns_label(const char *s, size_t max, bool letter_first);

#endif
