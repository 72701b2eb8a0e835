/* controller.h - key -> snapshot -> plan -> apply -> requeue. A key is the UID of a job.
 *
 * Ownership: borrows loop, transport, recorder and log; options are copied, their strings borrowed.
 * Order:     it works from its first turn of the loop on, as its reconciler does. After a pass wrote something, the
 *            key is not planned again until the cache shows it, or 5 s have passed; see "Stale caches" in DESIGN.md.
 */
#ifndef TK_OPERATOR_CONTROLLER_H
#define TK_OPERATOR_CONTROLLER_H

#include "common/log.h"
#include "kube/recorder.h"
#include "operator/latency.h"
#include "operator/watches.h"

struct controller;

struct controller_options {
    const char *ns; /* NULL: all */
    const char *tensorboard_image;
    uint64_t seed;
    bool list_pages; /* see watcher_options.pages */
};

/* Since the start, in the times when it led. */
struct controller_counts {
    uint64_t created, succeeded, failed, restarted, deleted;
    uint64_t pods_created, pods_deleted;
    uint64_t passes, failures;
    struct latency first_pod, running, running_again; /* see plan_waits */
    size_t pass_bytes;                                /* now: memory of the passes under way, see budget.h */
};

struct controller *controller_new(struct kube_loop *l, const struct kube_transport *t,
                                  struct kube_recorder *r, const struct log *log,
                                  const struct controller_options *options);
void controller_free(struct controller *c);

/* To lead, to drain, and for its queue. */
struct kube_reconciler *controller_reconciler(const struct controller *c);
struct watches_counts controller_cached(const struct controller *c);
const struct kube_store *controller_jobs(const struct controller *c); /* of struct jobtext */
struct controller_counts controller_counts(const struct controller *c);

static inline void controller_freep(struct controller **c)
{
    controller_free(*c);
}
#define cleanup_controller __attribute__((cleanup(controller_freep)))

#endif
