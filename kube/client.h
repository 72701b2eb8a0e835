/* client.h - send one request to the API server and receive its answer as JSON or as an error.
 *
 * Ownership: the transport outlives the request. The reply is borrowed for the callback, which may keep
 *            reply.object by TAKE.
 * Errors:    reply.err has the kinds of apistatus.h and transport.h, and ERR_TRANSIENT for a 2xx answer that is
 *            not JSON. A 2xx body that is too long or too deep, or has too many values or a NUL in a string,
 *            is not an error, since a retry would return the same body. `object` is then NULL. A caller that
 *            needs the object checks `unreadable`.
 * Order:     `done` is called exactly once, from the loop; after kube_request_cancel it is not called.
 */
#ifndef TK_KUBE_CLIENT_H
#define TK_KUBE_CLIENT_H

#include "kube/apistatus.h"
#include "kube/request.h"

struct kube_reply {
    cJSON *
        object; /* the body of a 2xx answer, which the callback may TAKE; NULL on failure, and when unreadable */
    const struct err *unreadable; /* why the body of a 2xx answer could not be read; else NULL */
    const cJSON *names;           /* object, or what skim.h found in an unreadable one; NULL: nothing */
    struct kube_status status;
    const struct err *err; /* NULL: success */
};

struct kube_request_run;

struct kube_request_run *kube_request_start(const struct kube_transport *t, const struct kube_request *r,
                                            void (*done)(void *ctx, struct kube_reply *reply), void *ctx,
                                            struct err *err) MUST_CHECK;
void kube_request_cancel(struct kube_request_run *run);

#endif
