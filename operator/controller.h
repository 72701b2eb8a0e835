/* controller.h - reconcile PyTorchTrainingJobs: key -> caches -> plan -> actions -> next time. A key is the
 * namespace and the UID of a job.
 *
 * Ownership: borrows loop, transport, recorder and log; options are copied, their strings borrowed. The
 *            memory of jobs (jobmemory.h) lives as long as the term of leadership.
 * Order:     it works while its reconciler leads. After a write for a job, it does not plan the job again
 *            before the caches include that write; see "Why these rules are enough" in DESIGN.md.
 */
#ifndef TK_OPERATOR_CONTROLLER_H
#define TK_OPERATOR_CONTROLLER_H

#include "common/log.h"
#include "kube/histogram.h"
#include "kube/recorder.h"
#include "operator/poller.h"
#include "operator/queues.h"
#include "operator/watches.h"

struct controller;

/* Of the latency histograms, from 0.1 s to an hour. */
static const struct histogram_bound LATENCY_BOUNDS[] = {
    {100, "0.1"},    {250, "0.25"},   {500, "0.5"},      {1000, "1"},       {2500, "2.5"},
    {5000, "5"},     {10000, "10"},   {30000, "30"},     {60000, "60"},     {120000, "120"},
    {300000, "300"}, {600000, "600"}, {1800000, "1800"}, {3600000, "3600"}, HISTOGRAM_INF};

struct controller_options {
    const char *ns;                /* NULL: all namespaces */
    const char *tensorboard_image; /* NULL: no TensorBoards, and Deployments are not watched */
    const char *launcher_image;
    struct plan_guards guards; /* except the key */
    struct plan_gangs gangs;
    bool job_keys;
    enum queues_use kueue;
    uint64_t seed;
    /* For tests, whose pods have no address: as in poller_options. NULL: podaddress_url. */
    bool (*progress_url)(const char *ip, char url[static PODADDRESS_URL_BYTES]);
};

/* Counters since the program's start, over all terms of leadership. */
struct controller_counts {
    uint64_t created, succeeded, failed, restarted, deleted;
    uint64_t pods_created, pods_deleted;
    uint64_t passes, failures;
    struct poller_counts polls;
    struct histogram first_pod, running, running_again; /* see plan_waits; their bounds: LATENCY_BOUNDS */
    /* Gauges: memory of the reconciles in progress (budget.h), and the number of jobs with a jobmemory. */
    size_t pass_bytes, remembered;
};

struct controller *controller_new(struct kube_loop *l, const struct kube_transport *t,
                                  struct kube_recorder *r, const struct log *log,
                                  const struct controller_options *options);
void controller_free(struct controller *c);

/* For leadership, draining, and metrics of its queue. */
struct kube_reconciler *controller_reconciler(const struct controller *c);
struct watches_counts controller_cached(const struct controller *c);
const struct kube_store *controller_jobs(const struct controller *c); /* its values are struct jobtext */
struct controller_counts controller_counts(const struct controller *c);

static inline void controller_freep(struct controller **c)
{
    controller_free(*c);
}
#define cleanup_controller __attribute__((cleanup(controller_freep)))

#endif
