/* decode.h - strict decoding of JSON for the files of api/: known members and words only, with bounds on
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

/* Limits of strings that others write, by their grammar: a DNS subdomain, a DNS label or a label's value, a
 * UID (the API server makes 36 characters), a resourceVersion (a number of etcd), a machine-readable reason,
 * the explanation why an object is unreadable. */
enum {
    DECODE_NAME_BYTES = 253,
    DECODE_LABEL_BYTES = 63,
    DECODE_UID_BYTES = 64,
    DECODE_VERSION_BYTES = 31,
    DECODE_REASON_BYTES = 128,
    DECODE_UNREADABLE_BYTES = 240,
};

/* Names in `metadata`. ERR_INVALID when one is longer than its limit or missing; only the version may be
 * missing, and is "" then. */
struct object_names {
    const char *ns, *name, *uid, *version;
};
int decode_names(const cJSON *metadata, const char *kind, struct object_names *ret,
                 struct err *err) MUST_CHECK;

/* Check that each member of the object `at` is in `known`. One in `refused` is reported as not supported
 * by this version, any other as unknown. Both lists end with NULL; `refused` may be NULL. An absent `at`
 * passes. */
int decode_members(const struct json_at *at, const char *const *known, const char *const *refused,
                   struct err *err) MUST_CHECK;

/* Refuse a number anywhere in `at` that cJSON may have rounded: in a pod it would be another one. */
int decode_numbers(const struct json_at *at, struct err *err) MUST_CHECK;

/* Decode one of `words` (ends with NULL); *ret is its index. Absent: *ret is unchanged. */
int decode_word(const struct json_at *at, const char *key, const char *const *words, int *ret,
                struct err *err) MUST_CHECK;

int decode_opt_i64(const struct json_at *at, const char *key, int64_t min, int64_t max, struct opt_i64 *ret,
                   struct err *err) MUST_CHECK;

/* Decode a string of at most max_bytes, borrowed from the tree. Absent: *ret is unchanged. */
int decode_text(const struct json_at *at, const char *key, size_t max_bytes, const char **ret,
                struct err *err) MUST_CHECK;

/* Decode a list of strings of at most max_bytes each, borrowed from the tree; the array lives in the
 * arena. */
int decode_strings(const struct json_at *at, const char *key, int max_items, size_t max_bytes,
                   struct arena *a, const char *const **ret, int *ret_n, struct err *err) MUST_CHECK;

/* Whether it is a DNS-1123 label of at most `max` characters; with letter_first a DNS-1035 label. */
bool decode_is_dns_label(const char *s, size_t max, bool letter_first);

#endif
