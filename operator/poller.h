/* poller.h - poll the progress of running jobs from their launchers, each every POLLER_INTERVAL_MS, by GET
 * /progress.
 *
 * Ownership: borrows loop and options' ctx; strings are copied. poller_free ends all exchanges without a call
 *            of `answered`.
 * Units:     monotonic milliseconds.
 * Order:     the first poll of a job is at a random time within the interval, so that jobs are spread over
 *            it. At most POLLER_SLOTS polls are in flight, and POLLER_NS_MAX of one namespace; namespaces are
 *            served in turn (kube/fairqueue.h). When a job gives no answer, or another job's, the poller
 *            doubles the delay before its next poll, up to POLLER_BACKOFF_MS; a good answer resets the delay.
 * Errors:    none: the poller counts them.
 */
#ifndef TK_OPERATOR_POLLER_H
#define TK_OPERATOR_POLLER_H

#include "kube/loop.h"
#include "operator/plan/plan.h"
#include "operator/podaddress.h"

enum {
    POLLER_INTERVAL_MS = 10000,
    POLLER_BACKOFF_MS = 300000,
    POLLER_SLOTS = 16,
    POLLER_NS_MAX = 2,
};

struct poller;

/* The pod to poll, and the job and attempt that the answer must have. */
struct poller_target {
    const char *ns, *job_uid, *pod_uid, *ip;
    int32_t attempt;
};

struct poller_options {
    void *ctx;
    uint64_t seed;
    /* A good answer. It must not call the poller. */
    void (*answered)(void *ctx, const struct poller_target *target, const struct jobprogress_answer *answer);
    /* podaddress_url, or a test's replacement. */
    bool (*url)(const char *ip, char url[static PODADDRESS_URL_BYTES]);
};

struct poller_counts {
    uint64_t ok, failed, dropped; /* dropped: the answer of another job or attempt */
    int out;                      /* gauge: polls in flight */
};

struct poller *poller_new(struct kube_loop *l, const struct poller_options *options);
void poller_free(struct poller *p);

/* Poll this job from now on, or continue. Another pod or attempt than before starts over. */
void poller_add(struct poller *p, const struct poller_target *target);
void poller_follow(struct poller *p,
                   const struct plan_input *in); /* poll the job or forget it, by progress_pod */
void poller_forget(struct poller *p, const char *job_uid);

struct poller_counts poller_counts(const struct poller *p);

#endif
