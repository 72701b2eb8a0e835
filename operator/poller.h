/* poller.h - ask the launchers of running jobs for their progress, each every POLLER_INTERVAL_MS, by GET /progress.
 *
 * Ownership: borrows loop and options' ctx; strings are copied. poller_free ends all exchanges without a call of `answered`.
 * Units:     monotonic milliseconds.
 * Order:     the first time is anywhere within the interval, so that jobs are spread over it. At most POLLER_SLOTS are out at
 *            once and POLLER_NS_MAX of one namespace; namespaces are served in turn (kube/fairqueue.h). When a job
 *            gives no answer, or another job's, the poller doubles the delay before the next request to it, up to
 *            POLLER_BACKOFF_MS; a good answer resets the delay.
 * Errors:    none: they are counted.
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

/* Whom to ask, and whose answer it has to be. */
struct poller_target {
    const char *ns, *job_uid, *pod_uid, *ip;
    int32_t attempt;
};

struct poller_options {
    void *ctx;
    uint64_t seed;
    /* A good answer. It must not call the poller. */
    void (*answered)(void *ctx, const struct poller_target *target, const struct jobprogress_answer *answer);
    /* podaddress_url; tests have their servers elsewhere. */
    bool (*url)(const char *ip, char url[static PODADDRESS_URL_BYTES]);
};

struct poller_counts {
    uint64_t ok, failed, dropped; /* dropped: the answer of another job or attempt */
    int out;                      /* not a counter: being asked now */
};

struct poller *poller_new(struct kube_loop *l, const struct poller_options *options);
void poller_free(struct poller *p);

/* Ask this job from now on, or go on; another pod or attempt than before begins anew. */
void poller_ask(struct poller *p, const struct poller_target *target);
void poller_follow(struct poller *p,
                   const struct plan_input *in); /* ask it, or forget it: see progress_pod */
void poller_forget(struct poller *p, const char *job_uid);

struct poller_counts poller_counts(const struct poller *p);

#endif
