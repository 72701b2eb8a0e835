/* manager.h - a controller as a program: finds the API server, owns the loop, the connections, the lease, Events and the
 * pages for probes and metrics, and leaves in good order.
 *
 * Ownership: the strings of its options, `config` and the reconcilers live as long as it; the reconcilers and whoever
 *            uses its loop go first.
 * Errors:    those of http.h, health.h and loop.h, when it is made or run.
 * Order:     SIGTERM or SIGINT: no key is begun; once nothing is under way, the Events that wait are sent
 *            (MANAGER_FLUSH_MS at most); then the lease is given up, and manager_run returns. After MANAGER_STOP_MS it
 *            returns in any case: a lease that is not given up by then is left to expire.
 */
#ifndef TK_KUBE_MANAGER_H
#define TK_KUBE_MANAGER_H

#include "kube/health.h"
#include "kube/prometheus.h"
#include "kube/recorder.h"

enum {
    MANAGER_STOP_MS = 4000,  /* Kubernetes kills after 30 s; people wait for rollouts */
    MANAGER_FLUSH_MS = 2000, /* for Events */
    MANAGER_LEASE_MS = 500,  /* of the above, kept for giving up the lease */
    MANAGER_SILENCE_MS =
        300000, /* /healthz fails when a watch heard nothing for so long: two bookmarks and their
                                    retries */
};

enum manager_news {
    MANAGER_STARTED, /* detail: the server */
    MANAGER_LISTENS, /* a page's path and its port, once for each listener: an address may leave it open */
    MANAGER_LEADS,   /* NULL */
    MANAGER_LEADS_NO_MORE, /* NULL */
    MANAGER_WAITS,         /* who leads; once for each */
    MANAGER_LEASE_FAILED,  /* what went wrong with a request for the lease */
    MANAGER_STOPS,         /* the signal */
    MANAGER_UNSAFE,        /* kube_config_warning, just after MANAGER_STARTED */
};

struct manager_options {
    const char *name; /* source of Events, and with the version the user agent */
    const char *version;
    double qps; /* requests per second, as in http.h; 0: no limit */
    int burst;
    const char *lease; /* lead by the Lease of this name; NULL: always */
    const char *lease_ns;
    int64_t lease_ms; /* its duration; the renewals' times are in proportion to it, lease.h; 0: the default */
    const char *metrics_address, *probe_address; /* as in health.h; NULL or "0": none */
    void *ctx;
    void (*tell)(void *ctx, enum manager_news news, const char *detail); /* for the log; may be NULL */
    int (*metrics)(void *ctx, struct buf *out,
                   struct err *err); /* families besides prometheus.h's; may be NULL */
};

struct manager;

struct manager *manager_new(struct kube_config *config, const struct manager_options *options,
                            struct err *err) MUST_CHECK;
void manager_free(struct manager *m);

struct loop *manager_loop(const struct manager *m);
const struct transport *
manager_transport(const struct manager *m); /* writes pass while it leads, see elector.h */
struct recorder *manager_recorder(const struct manager *m);
uint64_t manager_seed(void); /* random, for whoever wants jitter */

/* From here on it tells the reconciler when to lead and when to stop. Before manager_run. */
void manager_add(struct manager *m, struct reconciler *r);

/* Until a signal. */
int manager_run(struct manager *m, struct err *err) MUST_CHECK;

static inline void manager_freep(struct manager **m)
{
    manager_free(*m);
}
#define cleanup_manager __attribute__((cleanup(manager_freep)))

#endif
