/* client.h - one request to the API server and its answer as JSON or as an error.
 *
 * Ownership: the transport outlives the call. The reply is borrowed for the callback; detach what you
 *            keep.
 * Errors:    reply.err with the kinds of status.h and transport.h; ERR_TRANSIENT for a 2xx answer that
 *            is not JSON. One that is too long, too deep, of too many values or with a NUL in a string is no error, since
 *            the same would come again: object is NULL then, and whoever asked for the sake of the object looks at
 *            `unreadable`.
 * Order:     exactly one `done` per call, from the loop, unless cancelled.
 */
#ifndef TK_KUBE_CLIENT_H
#define TK_KUBE_CLIENT_H

#include "kube/request.h"
#include "kube/status.h"

struct kube_reply {
    cJSON *
        object; /* 2xx: the body; the callback may move it out with TAKE. NULL on failure, and when unreadable */
    const struct err *unreadable; /* why the body of a 2xx answer could not be read; else NULL */
    const cJSON *names;           /* object, or what skim_object finds in an unreadable one; NULL: nothing */
    struct kube_status status;
    const struct err *err; /* NULL: it worked */
};

struct kube_call;

struct kube_call *kube_call_start(const struct kube_transport *t, const struct kube_request *r,
                                  void (*done)(void *ctx, struct kube_reply *reply), void *ctx,
                                  struct err *err) MUST_CHECK;
void kube_call_cancel(struct kube_call *c);

#endif
