/* metrics.c - families one after the other, each with its HELP and TYPE. */
#include "operator/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* One queue: the label is there since dashboards for Go's controllers select by it. */
#define QUEUE "{name=\"pytorchtrainingjob\"}"

struct family {
    const char *name, *labels, *type, *help;
    uint64_t value;
};

static int write_head(struct buf *out, const char *name, const char *type, const char *help, struct err *err)
{
    return buf_printf(out, err, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int write_families(struct buf *out, const struct family *families, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct family *f = &families[i];
        if (write_head(out, f->name, f->type, f->help, err) < 0 ||
            buf_printf(out, err, "%s%s %" PRIu64 "\n", f->name, f->labels, f->value) < 0)
            return -1;
    }
    return 0;
}

static int write_jobs(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    struct controller_counts c = controller_counts(s->controller);
    struct watches_counts w = controller_cached(s->controller);
    const struct family families[] = {
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
        {"pytorchtrainingjob_caches_synced", "", "gauge", "1 once the local copies are complete.",
         reconciler_synced(controller_reconciler(s->controller))},
    };

    return write_families(out, families, ARRAY_LEN(families), err);
}

static int write_queue(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    struct workqueue_stats q = reconciler_queue(controller_reconciler(s->controller));
    struct recorder_stats r = recorder_stats(s->recorder);
    const struct family families[] = {
        {"workqueue_depth", QUEUE, "gauge", "Keys that are due.", q.depth},
        {"workqueue_delayed", QUEUE, "gauge", "Keys that become due later.", q.delayed},
        {"workqueue_processing", QUEUE, "gauge", "Keys being worked on.", q.processing},
        {"workqueue_adds_total", QUEUE, "counter", "Keys added.", q.adds},
        {"workqueue_retries_total", QUEUE, "counter", "Keys added after a failure.", q.retries},
        {"pytorchtrainingjob_events_sent_total", "", "counter", "Events that the API server took.", r.sent},
        {"pytorchtrainingjob_events_dropped_total", "", "counter", "Events that were not sent.",
         r.dropped + r.failed},
    };

    return write_families(out, families, ARRAY_LEN(families), err);
}

static int write_watches(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    const struct reconciler *r = controller_reconciler(s->controller);
    const struct cache *c;
    const char *resource;

    if (write_head(out, "reflector_lists_total", "counter", "Lists made.", err) < 0)
        return -1;
    for (size_t i = 0; (c = reconciler_cache(r, i, &resource)); i++)
        if (buf_printf(out, err, "reflector_lists_total{resource=\"%s\"} %" PRIu64 "\n", resource,
                       cache_stats(c).lists) < 0)
            return -1;
    if (write_head(out, "reflector_failures_total", "counter", "Lists and watches that failed.", err) < 0)
        return -1;
    for (size_t i = 0; (c = reconciler_cache(r, i, &resource)); i++)
        if (buf_printf(out, err, "reflector_failures_total{resource=\"%s\"} %" PRIu64 "\n", resource,
                       cache_stats(c).failures) < 0)
            return -1;
    return 0;
}

/* client-go's name and its word for "no answer". */
static int write_requests(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    size_t n;
    const struct http_count *counts = http_counts(s->http, &n);

    if (write_head(out, "rest_client_requests_total", "counter", "Requests to the API server.", err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        char code[16] = "<error>";
        if (counts[i].status > 0)
            snprintf(code, sizeof(code), "%d", counts[i].status);
        if (buf_printf(out, err, "rest_client_requests_total{code=\"%s\",method=\"%s\"} %" PRIu64 "\n", code,
                       counts[i].method, counts[i].n) < 0)
            return -1;
    }
    return 0;
}

/* 0 when /proc is not there: a gauge of 0 is told from a real one. */
static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f)
        return 0;
    if (fscanf(f, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static int write_process(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    struct rusage used = {0};
    const struct family resident = {"process_resident_memory_bytes", "", "gauge", "Resident memory.",
                                    resident_bytes()};

    getrusage(RUSAGE_SELF, &used);
    if (write_families(out, &resident, 1, err) < 0 ||
        write_head(out, "process_cpu_seconds_total", "counter", "CPU time, user and system.", err) < 0 ||
        buf_printf(out, err, "process_cpu_seconds_total %.6f\n",
                   seconds(&used.ru_utime) + seconds(&used.ru_stime)) < 0 ||
        write_head(out, "pytorchtrainingjob_build_info", "gauge", "The program.", err) < 0)
        return -1;
    return buf_printf(out, err, "pytorchtrainingjob_build_info{version=\"%s\"} 1\n", s->version);
}

int metrics_write(const struct metrics_sources *s, struct buf *out, struct err *err)
{
    if (write_jobs(s, out, err) < 0 || write_queue(s, out, err) < 0 || write_watches(s, out, err) < 0 ||
        write_requests(s, out, err) < 0)
        return -1;
    return write_process(s, out, err);
}
