/* term.h - since when this process leads, as a resourceVersion: of a job that has a higher one without a status, no earlier
 * leader can have written one.
 *
 * A list without a resourceVersion is a consistent read (Kubernetes API concepts, "Resource versions"), and versions of one
 * resource are revisions of etcd, in the order of the writes. So what is newer than a list that was asked for after the lease
 * was taken came when nobody else wrote any more.
 *
 * Ownership: borrows loop, transport and ns. term_release ends what is under way.
 * Errors:    a list that fails is asked for again; until one is there nothing counts as newer.
 */
#ifndef TK_OPERATOR_TERM_H
#define TK_OPERATOR_TERM_H

#include "kube/client.h"
#include "kube/loop.h"
#include "operator/api/decode.h"

struct term {
    struct kube_loop *loop;
    const struct kube_transport *transport;
    const char *ns; /* NULL: all */
    struct kube_call *call;
    struct kube_loop_timer again;
    char version[DECODE_VERSION_BYTES + 1]; /* of the list; "": not known */
};

void term_init(struct term *t, struct kube_loop *l, const struct kube_transport *transport, const char *ns);
void term_release(struct term *t);

/* It leads from now on: what was known is forgotten, and the list asked for. */
void term_begin(struct term *t);

/* False also for a version that is not a number. */
bool term_is_newer(const struct term *t, const char *job_version);

#endif
