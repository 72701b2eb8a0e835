/* manager.h - run a controller as a program: event loop, connections, leader election, Events, pages for
 * probes and metrics, and an orderly stop.
 *
 * Ownership: the strings of the options and `config` outlive the manager. The reconciler and all else that
 *            uses its loop exist while kube_manager_run runs and are freed before the manager.
 * Errors:    of kube_manager_new and kube_manager_run: those of http.h, health.h and loop.h.
 * Leader:    the manager competes for the lease once the caches of its reconciler have been complete.
 *            Without the lease the process is a standby: it keeps its caches up to date, begins no key and
 *            refuses writes.
 * Order:     after SIGTERM or SIGINT the manager begins no key. Once no key is in work, it sends the waiting
 *            Events (for KUBE_MANAGER_FLUSH_MS at most), then releases the lease, and kube_manager_run
 *            returns. After KUBE_MANAGER_STOP_MS it returns in any case; a lease that is not released by then
 *            expires.
 */
#ifndef TK_KUBE_MANAGER_H
#define TK_KUBE_MANAGER_H

#include "kube/health.h"
#include "kube/prometheus.h"
#include "kube/recorder.h"

enum {
    KUBE_MANAGER_STOP_MS = 4000,  /* Kubernetes kills after 30 s; rollouts wait for the exit */
    KUBE_MANAGER_FLUSH_MS = 2000, /* for sending Events */
    KUBE_MANAGER_LEASE_MS = 500,  /* of KUBE_MANAGER_STOP_MS, kept for releasing the lease */
    KUBE_MANAGER_PAGE_MS = 1000,  /* /metrics is written at most so often */
};

enum kube_manager_news {
    KUBE_MANAGER_STARTED,       /* detail: the server's URL */
    KUBE_MANAGER_LISTENS,       /* a page's path and its port; once per listener */
    KUBE_MANAGER_LEADS,         /* NULL */
    KUBE_MANAGER_LEADS_NO_MORE, /* NULL */
    KUBE_MANAGER_WAITS,         /* the holder; once per holder */
    KUBE_MANAGER_LEASE_FAILED,  /* the error of a request for the lease */
    KUBE_MANAGER_STOPS,         /* the signal's name */
};

struct kube_manager_options {
    const char *name; /* source of Events; with the version, the user agent */
    const char *version;
    const char *lease; /* name of the Lease; NULL: no election, always lead */
    const char *lease_ns;
    int64_t lease_ms;                            /* its duration; 0: LEASE_DURATION_MS */
    const char *metrics_address, *probe_address; /* as in health.h; NULL or "0": none */
    void *ctx;
    void (*report)(void *ctx, enum kube_manager_news news, const char *detail); /* for the log; may be NULL */
    /* Append metrics to those of prometheus.h. May be NULL. */
    void (*metrics)(void *ctx, struct buf *out);
};

struct kube_manager;

struct kube_manager *kube_manager_new(struct kube_config *config, const struct kube_manager_options *options,
                                      struct err *err) MUST_CHECK;
void kube_manager_free(struct kube_manager *m);

struct kube_loop *kube_manager_loop(const struct kube_manager *m);
const struct kube_transport *
kube_manager_transport(const struct kube_manager *m); /* refuses writes while it does not lead: elector.h */
const char *kube_manager_namespace(const struct kube_manager *m); /* the pod's; outside of one: "default" */
struct kube_recorder *kube_manager_recorder(const struct kube_manager *m);

/* Call it once, before kube_manager_run. From then on the manager starts and stops the reconciler. */
void kube_manager_add(struct kube_manager *m, struct kube_reconciler *r);

/* Run until a signal: see Order above. */
int kube_manager_run(struct kube_manager *m, struct err *err) MUST_CHECK;

static inline void kube_manager_freep(struct kube_manager **m)
{
    kube_manager_free(*m);
}
#define cleanup_kube_manager __attribute__((cleanup(kube_manager_freep)))

#endif
