/* prometheus.h - write the runtime's metrics in Prometheus' text format, under the names that dashboards for
 * Go's controllers use.
 *
 * Ownership: everything is borrowed for the call.
 * Units:     seconds. Durations are measured with the loop's clock, in milliseconds.
 * Errors:    none here: buf_check reports a buffer that was too small.
 * Order:     family after family, each with its HELP and TYPE. No label has a value that users choose.
 */
#ifndef TK_KUBE_PROMETHEUS_H
#define TK_KUBE_PROMETHEUS_H

#include "common/buf.h"
#include "kube/http.h"
#include "kube/reconciler.h"

struct prometheus_sources {
    const struct kube_reconciler *reconciler;
    const struct http *http;
    const char *lease; /* NULL: there is no leader election */
    bool leads;
};

/* Append workqueue_*, reflector_*, rest_client_requests_total, leader_election_master_status, process_*. */
void prometheus_write(const struct prometheus_sources *s, struct buf *out);

/* One sample. Samples of one family follow each other; the first one's type and help are used. labels: "" or
 * "{name=\"value\"}". */
struct prometheus_family {
    const char *name, *labels, *type, *help;
    uint64_t value;
};
/* Append samples, with HELP and TYPE before the first one of each family. */
void prometheus_families(struct buf *out, const struct prometheus_family *families, size_t n);

/* ---- families with several series: first prometheus_head, then the samples */

void prometheus_head(struct buf *out, const char *name, const char *type, const char *help);

/* Append `value` escaped for the quotes of a label: backslash, quote and line feed. */
void prometheus_label(struct buf *out, const char *value);

/* label: "" or "name=\"value\"". */
void prometheus_histogram(struct buf *out, const char *name, const char *label, const struct histogram *h,
                          const struct histogram_bound *bounds);

#endif
