/* apistatus.h - map an answer of the API server to an error kind and a reason.
 *
 * Errors:    err.code is the HTTP status, the message is the server's; the kind follows the code:
 *           ERR_NOT_FOUND   404: no such object, or no such resource
 *           ERR_CONFLICT    409: an object that exists already has a reason of its own
 *           ERR_INVALID     400 403 405 406 413 415 422: a retry changes nothing
 *           ERR_TRANSIENT   401 408 410 429 5xx and all others
 *           A 403 may go away (a permission is granted, quota is freed): retry it slowly. A 401 is transient because
 *           tokens are rotated and read again.
 */
#ifndef TK_KUBE_APISTATUS_H
#define TK_KUBE_APISTATUS_H

#include "common/cleanup.h"
#include "kube/transport.h"

#include <cjson/cJSON.h>

/* What the code and the error's kind do not say. */
enum kube_reason {
    KUBE_REASON_OTHER,
    KUBE_REASON_ALREADY_EXISTS, /* 409, but not a conflict of versions */
    KUBE_REASON_EXPIRED, /* the version, or the list, is too old: 410 as the answer or inside a stream */
};

/* Of a Retry-After: a proxy's page for maintenance may say an hour, and a webhook anything. */
enum { KUBE_RETRY_AFTER_MAX_MS = 60000 };

struct kube_status {
    int code; /* HTTP status; 0: no answer */
    enum kube_reason reason;
    int64_t retry_after_ms; /* -1: not given. Never retry sooner than this */
};

/* 0 for a 2xx answer; else -1 with *err and *ret set. The message comes from the body also when that is not a
 * Status object. */
int kube_status_check(const struct kube_http_response *r, struct kube_status *ret,
                      struct err *err) MUST_CHECK;

/* The same for a Status object inside a watch stream, whose code is a member of the object. Always -1. */
int kube_status_object(const cJSON *status, struct kube_status *ret, struct err *err);

#endif
