/* queues.h - find out whether the API server serves Kueue's Workloads: at the start, and once a minute while a job
 * has a queue or they are served.
 *
 * Ownership: borrows loop and transport; queues_free cancels its request.
 * Order:     `changed` is called from the loop, when Kueue was found or has gone. Two answers in a row without
 *            Workloads mean that it has gone, since an API server that starts may not know them yet. An answer
 *            that is neither changes nothing. While nobody needs the answer there is no request, and the old
 *            answer is forgotten.
 */
#ifndef TK_OPERATOR_QUEUES_H
#define TK_OPERATOR_QUEUES_H

#include "kube/loop.h"
#include "kube/transport.h"

#include <stdbool.h>

/* The option --kueue. AUTO: used where it is served. */
enum queues_use { QUEUES_OFF, QUEUES_AUTO, QUEUES_ON };

struct queues;

/* `needed`: whether a job has a queue or a Workload; called once a minute. */
struct queues *queues_new(struct kube_loop *l, const struct kube_transport *t, enum queues_use use,
                          bool (*needed)(void *ctx), void (*changed)(void *ctx), void *ctx);
void queues_free(struct queues *q);

/* A job with a queue is planned: find out now if it is not known. */
void queues_need(struct queues *q);

bool queues_are_known(const struct queues *q);  /* there was an answer, or no question */
bool queues_are_served(const struct queues *q); /* false while not known */

#endif
