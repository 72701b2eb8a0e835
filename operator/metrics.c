/* metrics.c - one table: each row a family. */
#include "operator/metrics.h"

#include "kube/prometheus.h"

#include <stdio.h>

int metrics_write(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    struct controller_counts c = controller_counts(s->controller);
    struct watches_counts w = controller_cached(s->controller);
    struct recorder_stats r = recorder_stats(s->recorder);
    char version[64];
    const struct prometheus_family families[] = {
        {"pytorchtrainingjob_created_total", "", "counter", "Jobs started.", c.created},
        {"pytorchtrainingjob_succeeded_total", "", "counter", "Jobs that succeeded.", c.succeeded},
        {"pytorchtrainingjob_failed_total", "", "counter", "Jobs that failed.", c.failed},
        {"pytorchtrainingjob_restarted_total", "", "counter", "Attempts begun after a failure.", c.restarted},
        {"pytorchtrainingjob_deleted_total", "", "counter", "Jobs that were deleted.", c.deleted},
        {"pytorchtrainingjob_pods_created_total", "", "counter", "Pods created.", c.pods_created},
        {"pytorchtrainingjob_pods_deleted_total", "", "counter", "Pods deleted.", c.pods_deleted},
        {"pytorchtrainingjob_passes_total", "", "counter", "Planning passes.", c.passes},
        {"pytorchtrainingjob_pass_failures_total", "", "counter", "Passes that an API request ended.",
         c.failures},
        {"pytorchtrainingjob_cached_jobs", "", "gauge", "Jobs in the local copy.", w.jobs},
        {"pytorchtrainingjob_cached_pods", "", "gauge", "Pods in the local copy.", w.pods},
        {"pytorchtrainingjob_cached_pod_bytes", "", "gauge", "Memory of the pods in the local copy.",
         w.pod_bytes},
        {"pytorchtrainingjob_caches_synced", "", "gauge", "1 once the local copies are complete.",
         reconciler_synced(controller_reconciler(s->controller))},
        {"pytorchtrainingjob_events_sent_total", "", "counter", "Events that the API server took.", r.sent},
        {"pytorchtrainingjob_events_dropped_total", "", "counter", "Events that were not sent.",
         r.dropped + r.failed},
        {"pytorchtrainingjob_build_info", version, "gauge", "The program.", 1},
    };

    snprintf(version, sizeof(version), "{version=\"%s\"}", s->version);
    return prometheus_families(out, families, ARRAY_LEN(families), err);
}
