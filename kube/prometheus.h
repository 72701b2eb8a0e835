/* prometheus.h - write the runtime's metrics in Prometheus' text format, under the names that dashboards for
 * Go's controllers use.
 *
 * Ownership: everything is borrowed for the call.
 * Units:     seconds. Durations are measured with the loop's clock, in milliseconds: see histogram.h.
 * Errors:    those of buf.h, when `out` is full.
 * Order:     family after family, each with its HELP and TYPE. No label has a value that users choose.
 */
#ifndef TK_KUBE_PROMETHEUS_H
#define TK_KUBE_PROMETHEUS_H

#include "common/buf.h"
#include "kube/http.h"
#include "kube/reconciler.h"

struct prometheus_sources {
    const struct kube_reconciler *const *reconcilers;
    size_t n_reconcilers;
    const struct http *http;
    const char *lease; /* NULL: there is no leader election */
    bool leads;
};

/* Append workqueue_*, reflector_*, rest_client_requests_total, leader_election_master_status, process_*. */
int prometheus_write(const struct prometheus_sources *s, struct buf *out, struct err *err) MUST_CHECK;

/* One sample. Samples of one family follow each other; the first one's type and help are used. labels: "" or
 * "{name=\"value\"}". */
struct prometheus_family {
    const char *name, *labels, *type, *help;
    uint64_t value;
};
/* Append samples, with HELP and TYPE before the first one of each family. */
int prometheus_families(struct buf *out, const struct prometheus_family *families, size_t n,
                        struct err *err) MUST_CHECK;

/* ---- families with several series: first prometheus_head, then the samples */

int prometheus_head(struct buf *out, const char *name, const char *type, const char *help,
                    struct err *err) MUST_CHECK;

/* Append `value` escaped for the quotes of a label: backslash, quote and line feed. */
int prometheus_label(struct buf *out, const char *value, struct err *err) MUST_CHECK;

struct prometheus_histogram {
    const char *name;
    const char *label;         /* "" or "name=\"value\"" */
    const char *const *bounds; /* as printed; the last one is "+Inf" */
    const uint64_t *counts;    /* one for each bound, not cumulative */
    size_t n_bounds;
    uint64_t n, sum_ms;
};
int prometheus_histogram(struct buf *out, const struct prometheus_histogram *h, struct err *err) MUST_CHECK;

#endif
