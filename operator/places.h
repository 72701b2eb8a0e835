/* places.h - request the places of waiting jobs from Kueue's visibility API: of all jobs of a LocalQueue by one request, every
 * half minute while one of them waits.
 *
 * Ownership: borrows loop and transport; places_free cancels its request. Strings are copied.
 * Order:     one request at a time. An API that does not answer is left alone for a minute, a LocalQueue that it does not
 *            know as well. `found` is called from the loop.
 * Limits:    PLACES_MAX LocalQueues, of them PLACES_NS_MAX of one namespace: jobs of others get no place. Kueue's
 *            answer has 1000 Workloads at most.
 */
#ifndef TK_OPERATOR_PLACES_H
#define TK_OPERATOR_PLACES_H

#include "kube/loop.h"
#include "kube/transport.h"

enum { PLACES_MAX = 256, PLACES_NS_MAX = 16, PLACES_EVERY_MS = 30000, PLACES_FRESH_MS = 60000 };

struct places;

/* found: the job of this UID has this place, from 1, among all that wait in the ClusterQueue. */
struct places *places_new(struct kube_loop *l, const struct kube_transport *t,
                          void (*found)(void *ctx, const char *ns, const char *job_uid, int place),
                          void *ctx);
void places_free(struct places *p);

/* A job waits in this LocalQueue; call it again within PLACES_FRESH_MS. known: it has a place. */
void places_need(struct places *p, const char *ns, const char *queue, bool known);

#endif
