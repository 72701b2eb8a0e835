/* prometheus.c - write the runtime's metrics in Prometheus' text format, family by family. */
#include "kube/prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* As Go prints the bounds that client-go reaches by multiplying: sums over `le` join both kinds of controllers. */
static const char *const BOUNDS[HISTOGRAM_BUCKETS + 1] = {
    "1e-08", "1e-07", "1e-06", "9.999999999999999e-06", "9.999999999999999e-05", "0.001", "0.01", "0.1",
    "1",     "10",    "+Inf"};

int prometheus_head(struct buf *out, const char *name, const char *type, const char *help, struct err *err)
{
    return buf_printf(out, err, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

int prometheus_families(struct buf *out, const struct prometheus_family *families, size_t n, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct prometheus_family *f = &families[i];
        bool more = i > 0 && strcmp(f->name, families[i - 1].name) == 0; /* of the same family */
        if ((!more && prometheus_head(out, f->name, f->type, f->help, err) < 0) ||
            buf_printf(out, err, "%s%s %" PRIu64 "\n", f->name, f->labels, f->value) < 0)
            return -1;
    }
    return 0;
}

static double seconds(int64_t ms)
{
    return (double)ms / 1000;
}

int prometheus_label(struct buf *out, const char *value, struct err *err)
{
    for (; *value; value++) {
        const char *text = *value == '\\' ? "\\\\" : *value == '"' ? "\\\"" : *value == '\n' ? "\\n" : NULL;
        if ((text ? buf_puts(out, text, err) : buf_append(out, value, 1, err)) < 0)
            return -1;
    }
    return 0;
}

int prometheus_histogram(struct buf *out, const struct prometheus_histogram *h, struct err *err)
{
    const char *comma = h->label[0] ? "," : "";
    const char *open = h->label[0] ? "{" : "";
    const char *close = h->label[0] ? "}" : "";
    uint64_t below = 0;

    for (size_t i = 0; i < h->n_bounds; i++) {
        below += h->counts[i];
        if (buf_printf(out, err, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", h->name, h->label, comma,
                       h->bounds[i], below) < 0)
            return -1;
    }
    return buf_printf(out, err, "%s_sum%s%s%s %.3f\n%s_count%s%s%s %" PRIu64 "\n", h->name, open, h->label,
                      close, seconds((int64_t)h->sum_ms), h->name, open, h->label, close, h->n);
}

/* ---- one work queue's samples */

struct queue {
    struct kube_workqueue_stats stats;
    struct kube_workqueue_unfinished unfinished;
};

enum kind { KEYS, COUNT, MILLISECONDS, HISTOGRAM };

/* name: a reconciler's. field: in a struct queue, of the type that belongs to the kind. */
static int write_sample(struct buf *out, const char *family, const char *name, enum kind kind,
                        const void *field, struct err *err)
{
    const struct histogram *h = field;
    char label[96];

    snprintf(label, sizeof(label), "name=\"%s\"", name);
    switch (kind) {
    case KEYS:
        return buf_printf(out, err, "%s{%s} %zu\n", family, label, *(const size_t *)field);
    case COUNT:
        return buf_printf(out, err, "%s{%s} %" PRIu64 "\n", family, label, *(const uint64_t *)field);
    case MILLISECONDS:
        return buf_printf(out, err, "%s{%s} %.3f\n", family, label, seconds(*(const int64_t *)field));
    case HISTOGRAM:
        return prometheus_histogram(out,
                                    &(struct prometheus_histogram){family, label, BOUNDS, h->counts,
                                                                   ARRAY_LEN(BOUNDS), h->n, h->sum_ms},
                                    err);
    }
    return 0;
}

#define FIELD(f) offsetof(struct queue, f)

static int write_queues(const struct prometheus_sources *s, struct buf *out, struct err *err)
{
    static const struct {
        const char *name, *type, *help;
        enum kind kind;
        size_t field;
    } FAMILIES[] = {
        {"workqueue_depth", "gauge", "Keys that are due.", KEYS, FIELD(stats.depth)},
        {"workqueue_delayed", "gauge", "Keys that become due later.", KEYS, FIELD(stats.delayed)},
        {"workqueue_processing", "gauge", "Keys being worked on.", KEYS, FIELD(stats.processing)},
        {"workqueue_adds_total", "counter", "Keys that became due.", COUNT, FIELD(stats.adds)},
        {"workqueue_retries_total", "counter", "Keys that come again after a failure.", COUNT,
         FIELD(stats.retries)},
        {"workqueue_queue_duration_seconds", "histogram", "How long keys were due before they were taken.",
         HISTOGRAM, FIELD(stats.queued)},
        {"workqueue_work_duration_seconds", "histogram", "How long keys were worked on.", HISTOGRAM,
         FIELD(stats.worked)},
        {"workqueue_unfinished_work_seconds", "gauge", "Time spent so far on keys being worked on.",
         MILLISECONDS, FIELD(unfinished.sum_ms)},
        {"workqueue_longest_running_processor_seconds", "gauge",
         "How long the oldest of the keys being worked on has been.", MILLISECONDS,
         FIELD(unfinished.longest_ms)},
    };

    for (size_t f = 0; f < ARRAY_LEN(FAMILIES); f++) {
        if (prometheus_head(out, FAMILIES[f].name, FAMILIES[f].type, FAMILIES[f].help, err) < 0)
            return -1;
        for (size_t i = 0; i < s->n_reconcilers; i++) {
            const struct kube_reconciler *r = s->reconcilers[i];
            const struct queue q = {kube_reconciler_queue(r), kube_reconciler_unfinished(r)};
            if (write_sample(out, FAMILIES[f].name, kube_reconciler_name(r), FAMILIES[f].kind,
                             (const char *)&q + FAMILIES[f].field, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- the caches, each of a resource of its own */

static int write_caches(const struct prometheus_sources *s, struct buf *out, const char *family,
                        const char *help, bool failures, struct err *err)
{
    if (prometheus_head(out, family, "counter", help, err) < 0)
        return -1;
    for (size_t i = 0; i < s->n_reconcilers; i++) {
        const struct kube_reconciler *r = s->reconcilers[i];
        const struct kube_cache *c;
        const char *resource;
        for (size_t k = 0; (c = kube_reconciler_cache(r, k, &resource)); k++)
            if (buf_printf(out, err, "%s{name=\"%s\",resource=\"%s\"} %" PRIu64 "\n", family,
                           kube_reconciler_name(r), resource,
                           failures ? kube_cache_stats(c).failures : kube_cache_stats(c).lists) < 0)
                return -1;
    }
    return 0;
}

/* ---- the process */

/* client-go's name and its word for "no answer". */
static int write_requests(const struct http *http, struct buf *out, struct err *err)
{
    size_t n;
    const struct http_count *counts = http_counts(http, &n);

    if (prometheus_head(out, "rest_client_requests_total", "counter", "Requests to the API server.", err) < 0)
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

static int write_leader(const struct prometheus_sources *s, struct buf *out, struct err *err)
{
    if (!s->lease)
        return 0;
    if (prometheus_head(out, "leader_election_master_status", "gauge",
                        "1 while this process holds the lease.", err) < 0)
        return -1;
    return buf_printf(out, err, "leader_election_master_status{name=\"%s\"} %d\n", s->lease, s->leads);
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

static double cpu_seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static int write_process(struct buf *out, struct err *err)
{
    struct rusage used = {0};
    const struct prometheus_family resident = {"process_resident_memory_bytes", "", "gauge",
                                               "Resident memory.", resident_bytes()};

    getrusage(RUSAGE_SELF, &used);
    if (prometheus_families(out, &resident, 1, err) < 0 ||
        prometheus_head(out, "process_cpu_seconds_total", "counter", "CPU time, user and system.", err) < 0)
        return -1;
    return buf_printf(out, err, "process_cpu_seconds_total %.6f\n",
                      cpu_seconds(&used.ru_utime) + cpu_seconds(&used.ru_stime));
}

int prometheus_write(const struct prometheus_sources *s, struct buf *out, struct err *err)
{
    if (write_queues(s, out, err) < 0 ||
        write_caches(s, out, "reflector_lists_total", "Lists made.", false, err) < 0 ||
        write_caches(s, out, "reflector_failures_total", "Lists and watches that failed.", true, err) < 0 ||
        write_requests(s->http, out, err) < 0 || write_leader(s, out, err) < 0)
        return -1;
    return write_process(out, err);
}
