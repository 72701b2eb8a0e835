/* impersonate.h - turn `as`, `as-uid`, `as-groups` and `as-user-extra` of a kubeconfig's user into request
 * headers. Pure.
 *
 * Ownership: the lines live in the arena.
 * Errors:    ERR_INVALID naming the field: not a string; a control character; uid, groups or extra without
 *            `as`; more than IMPERSONATE_MAX_LINES headers or IMPERSONATE_MAX_BYTES. *ret is untouched on
 *            failure.
 */
#ifndef TK_KUBE_AUTH_IMPERSONATE_H
#define TK_KUBE_AUTH_IMPERSONATE_H

#include "common/json.h"

/* Limits of this project: the server reads at most 1 MiB of headers, and a request should stay far below. */
enum { IMPERSONATE_MAX_LINES = 1000, IMPERSONATE_MAX_BYTES = 32 << 10 };

struct impersonate {
    const char **lines; /* "Impersonate-User: jane", ... */
    size_t n;           /* 0: no impersonation */
};

int impersonate_decode(const struct json_at *user, struct arena *a, struct impersonate *ret,
                       struct err *err) MUST_CHECK;

#endif
