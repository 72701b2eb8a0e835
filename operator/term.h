/* term.h - the resourceVersion at which this process became leader: for a job with a higher one and without a
 * status, no earlier leader has written a status.
 *
 * A list without a resourceVersion is a consistent read (Kubernetes API concepts, "Resource versions").
 * Versions of one resource are revisions of etcd, in the order of the writes. So what is newer than a list
 * that was requested after the lease was acquired was written when no earlier leader could write any more.
 *
 * Ownership: borrows loop, transport and ns. term_release cancels the request.
 * Errors:    a list that fails is requested again after 10 s; until one succeeds no job counts as newer.
 */
#ifndef TK_OPERATOR_TERM_H
#define TK_OPERATOR_TERM_H

#include "kube/client.h"
#include "kube/loop.h"
#include "operator/api/decode.h"

struct term {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    const char *ns; /* NULL: all namespaces */
    struct kube_call *call;
    struct kube_loop_timer again;
    char version[DECODE_VERSION_BYTES + 1]; /* of the list; "": not known yet */
};

void term_init(struct term *t, struct kube_loop *l, const struct kube_transport *transport, const char *ns);
void term_release(struct term *t);

/* A term of leadership begins: forget the version and request the list. */
void term_begin(struct term *t);

/* Whether the job is newer than the term. False also for a version that is not a number. */
bool term_is_newer(const struct term *t, const char *job_version);

#endif
