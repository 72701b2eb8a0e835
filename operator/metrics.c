/* metrics.c - families one after the other, each with its HELP and TYPE. */
#include "operator/metrics.h"

#include <inttypes.h>

struct family {
    const char *name, *type, *help;
    uint64_t value;
};

static int write_family(struct buf *out, const struct family *f, struct err *err)
{
    return buf_printf(out, err, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", f->name, f->help, f->name,
                      f->type, f->name, f->value);
}

static int write_jobs(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    struct controller_counts c = controller_counts(s->controller);
    struct watches_counts w = watches_counts(controller_watches(s->controller));
    struct workqueue_stats q = controller_queue(s->controller);
    struct recorder_stats r = recorder_stats(s->recorder);
    const struct family families[] = {
        {"pytorchtrainingjob_created_total", "counter", "Jobs started.", c.created},
        {"pytorchtrainingjob_succeeded_total", "counter", "Jobs that succeeded.", c.succeeded},
        {"pytorchtrainingjob_failed_total", "counter", "Jobs that failed.", c.failed},
        {"pytorchtrainingjob_restarted_total", "counter", "Attempts begun after a failure.", c.restarted},
        {"pytorchtrainingjob_deleted_total", "counter", "Jobs that were deleted.", c.deleted},
        {"pytorchtrainingjob_pods_created_total", "counter", "Pods created.", c.pods_created},
        {"pytorchtrainingjob_pods_deleted_total", "counter", "Pods deleted.", c.pods_deleted},
        {"pytorchtrainingjob_passes_total", "counter", "Planning passes.", c.passes},
        {"pytorchtrainingjob_pass_failures_total", "counter", "Passes that an API request ended.",
         c.failures},
        {"pytorchtrainingjob_cached_jobs", "gauge", "Jobs in the local copy.", w.jobs},
        {"pytorchtrainingjob_cached_pods", "gauge", "Pods in the local copy.", w.pods},
        {"pytorchtrainingjob_events_dropped_total", "counter", "Events that were not sent.",
         r.dropped + r.failed},
        {"workqueue_depth", "gauge", "Keys that are due.", q.depth},
        {"workqueue_delayed", "gauge", "Keys that become due later.", q.delayed},
        {"workqueue_adds_total", "counter", "Keys added.", q.adds},
        {"workqueue_retries_total", "counter", "Keys added after a failure.", q.retries},
    };

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (write_family(out, &families[i], err) < 0)
            return -1;
    return 0;
}

static int write_watches(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    static const char *const RESOURCES[] = {"pods", "services", "deployments", "pytorchtrainingjobs"};
    struct watches_counts w = watches_counts(controller_watches(s->controller));

    if (buf_puts(out, "# HELP reflector_lists_total Lists made.\n# TYPE reflector_lists_total counter\n",
                 err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(RESOURCES); i++)
        if (buf_printf(out, err, "reflector_lists_total{resource=\"%s\"} %" PRIu64 "\n", RESOURCES[i],
                       w.reflectors[i].lists) < 0)
            return -1;
    if (buf_puts(out,
                 "# HELP reflector_failures_total Lists and watches that failed.\n"
                 "# TYPE reflector_failures_total counter\n",
                 err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(RESOURCES); i++)
        if (buf_printf(out, err, "reflector_failures_total{resource=\"%s\"} %" PRIu64 "\n", RESOURCES[i],
                       w.reflectors[i].failures) < 0)
            return -1;
    return 0;
}

static int write_requests(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    size_t n;
    const struct http_count *counts = http_counts(s->http, &n);

    if (buf_puts(out,
                 "# HELP rest_client_requests_total Requests to the API server.\n"
                 "# TYPE rest_client_requests_total counter\n",
                 err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (buf_printf(out, err, "rest_client_requests_total{code=\"%d\",method=\"%s\"} %" PRIu64 "\n",
                       counts[i].status, counts[i].method, counts[i].n) < 0)
            return -1;
    return 0;
}

int metrics_write(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    if (write_jobs(s, out, err) < 0 || write_watches(s, out, err) < 0 || write_requests(s, out, err) < 0)
        return -1;
    return buf_printf(out, err,
                      "# HELP pytorchtrainingjob_build_info The program.\n"
                      "# TYPE pytorchtrainingjob_build_info gauge\n"
                      "pytorchtrainingjob_build_info{version=\"%s\"} 1\n",
                      s->version);
}
