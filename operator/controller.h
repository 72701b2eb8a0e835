/* controller.h - key -> snapshot -> plan -> apply -> requeue. A key is the UID of a job.
 *
 * Ownership: borrows loop, transport, recorder and log; options are copied, their strings borrowed.
 * Order:     one key is worked on by one pass at a time; what changes meanwhile brings it back. After a pass
 *            wrote something, the key is not planned again until the cache shows it, or 5 s have passed; see
 *            DESIGN.md.
 */
#ifndef TK_OPERATOR_CONTROLLER_H
#define TK_OPERATOR_CONTROLLER_H

#include "common/log.h"
#include "kube/recorder.h"
#include "kube/workqueue.h"
#include "operator/watches.h"

struct controller;

struct controller_options {
    const char *ns; /* NULL: all */
    const char *tensorboard_image;
    uint64_t seed;
    bool waits; /* for controller_lead before it does anything */
};

/* Since the start. */
struct controller_counts {
    uint64_t created, succeeded, failed, restarted, deleted;
    uint64_t pods_created, pods_deleted;
    uint64_t passes, failures;
};

struct controller *controller_new(struct loop *l, const struct transport *t, struct recorder *r,
                                  const struct log *log, const struct controller_options *options);
void controller_start(struct controller *c);

/* Begin to decide, or stop to: the caches are kept either way. What is under way goes on until its next write. */
void controller_lead(struct controller *c, bool leads);

/* Take no new keys; `drained` is called once nothing is under way. */
void controller_drain(struct controller *c, void (*drained)(void *ctx), void *ctx);
void controller_free(struct controller *c);

const struct watches *controller_watches(const struct controller *c);
struct controller_counts controller_counts(const struct controller *c);
struct workqueue_stats controller_queue(const struct controller *c);

static inline void controller_freep(struct controller **c)
{
    controller_free(*c);
}
#define cleanup_controller __attribute__((cleanup(controller_freep)))

#endif
