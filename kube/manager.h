/* manager.h - a controller as a program: finds the API server, owns the loop, the connections, the lease, Events and the
 * pages for probes and metrics, and leaves in good order.
 *
 * Ownership: the strings of its options, `config` and the reconcilers live as long as it; the reconcilers and whoever
 *            uses its loop go first.
 * Errors:    those of http.h, health.h and loop.h, when it is made or run.
 * Order:     SIGTERM or SIGINT: no key is begun; once nothing is under way, the Events that wait are sent
 *            (KUBE_MANAGER_FLUSH_MS at most); then the lease is given up, and kube_manager_run returns. After KUBE_MANAGER_STOP_MS it
 *            returns in any case: a lease that is not given up by then is left to expire.
 */
#ifndef TK_KUBE_MANAGER_H
#define TK_KUBE_MANAGER_H

#include "kube/health.h"
#include "kube/prometheus.h"
#include "kube/recorder.h"

enum {
    KUBE_MANAGER_STOP_MS = 4000,  /* Kubernetes kills after 30 s; people wait for rollouts */
    KUBE_MANAGER_FLUSH_MS = 2000, /* for Events */
    KUBE_MANAGER_LEASE_MS = 500,  /* of the above, kept for giving up the lease */
    KUBE_MANAGER_SILENCE_MS =
        300000, /* /healthz fails when a watch heard nothing for so long: two bookmarks and their
                                    retries */
};

enum kube_manager_news {
    KUBE_MANAGER_STARTED, /* detail: the server */
    KUBE_MANAGER_LISTENS, /* a page's path and its port, once for each listener: an address may leave it open */
    KUBE_MANAGER_LEADS,   /* NULL */
    KUBE_MANAGER_LEADS_NO_MORE, /* NULL */
    KUBE_MANAGER_WAITS,         /* who leads; once for each */
    KUBE_MANAGER_LEASE_FAILED,  /* what went wrong with a request for the lease */
    KUBE_MANAGER_STOPS,         /* the signal */
    KUBE_MANAGER_UNSAFE,        /* kube_config_warning, just after KUBE_MANAGER_STARTED */
};

struct kube_manager_options {
    const char *name; /* source of Events, and with the version the user agent */
    const char *version;
    double qps; /* requests per second, as in http.h; 0: no limit */
    int burst;
    const char *lease; /* lead by the Lease of this name; NULL: always */
    const char *lease_ns;
    int64_t lease_ms; /* its duration; the renewals' times are in proportion to it, lease.h; 0: the default */
    const char *metrics_address, *probe_address; /* as in health.h; NULL or "0": none */
    void *ctx;
    void (*tell)(void *ctx, enum kube_manager_news news, const char *detail); /* for the log; may be NULL */
    int (*metrics)(void *ctx, struct buf *out,
                   struct err *err); /* families besides prometheus.h's; may be NULL */
};

struct kube_manager;

struct kube_manager *kube_manager_new(struct kube_config *config, const struct kube_manager_options *options,
                                      struct err *err) MUST_CHECK;
void kube_manager_free(struct kube_manager *m);

struct kube_loop *kube_manager_loop(const struct kube_manager *m);
const struct kube_transport *
kube_manager_transport(const struct kube_manager *m); /* writes pass while it leads, see elector.h */
struct kube_recorder *kube_manager_recorder(const struct kube_manager *m);
uint64_t kube_manager_seed(void); /* random, for whoever wants jitter */

/* From here on it tells the reconciler when to lead and when to stop. Before kube_manager_run. */
void kube_manager_add(struct kube_manager *m, struct kube_reconciler *r);

/* Until a signal. */
int kube_manager_run(struct kube_manager *m, struct err *err) MUST_CHECK;

static inline void kube_manager_freep(struct kube_manager **m)
{
    kube_manager_free(*m);
}
#define cleanup_kube_manager __attribute__((cleanup(kube_manager_freep)))

#endif
