/* prometheus.c - write the runtime's metrics in Prometheus' text format, family by family. */
#include "kube/prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void prometheus_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, NULL, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void prometheus_families(struct buf *out, const struct prometheus_family *families, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct prometheus_family *f = &families[i];
        if (i == 0 || strcmp(f->name, families[i - 1].name) != 0)
            prometheus_head(out, f->name, f->type, f->help);
        buf_printf(out, NULL, "%s%s %" PRIu64 "\n", f->name, f->labels, f->value);
    }
}

static double seconds(int64_t ms)
{
    return (double)ms / 1000;
}

void prometheus_label(struct buf *out, const char *value)
{
    for (; *value; value++) {
        if (strchr("\\\"\n", *value))
            buf_puts(out, "\\", NULL);
        buf_append(out, *value == '\n' ? "n" : value, 1, NULL);
    }
}

void prometheus_histogram(struct buf *out, const char *name, const char *label, const struct histogram *h,
                          const struct histogram_bound *bounds)
{
    const char *comma = label[0] ? "," : "";
    const char *open = label[0] ? "{" : "";
    const char *close = label[0] ? "}" : "";
    uint64_t below = 0;
    size_t i = 0;

    do {
        below += h->counts[i];
        buf_printf(out, NULL, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, label, comma, bounds[i].text,
                   below);
    } while (bounds[i++].ms != INT64_MAX);
    buf_printf(out, NULL, "%s_sum%s%s%s %.3f\n", name, open, label, close, seconds((int64_t)h->sum_ms));
    buf_printf(out, NULL, "%s_count%s%s%s %" PRIu64 "\n", name, open, label, close, h->n);
}

/* A family with one sample. labels: as in struct prometheus_family. */
static void put(struct buf *out, const char *name, const char *labels, const char *type, const char *help,
                double value)
{
    prometheus_head(out, name, type, help);
    buf_printf(out, NULL, "%s%s %.15g\n", name, labels, value);
}

/* ---- the work queue */

static void put_durations(struct buf *out, const char *name, const char *label, const char *help,
                          const struct histogram *h)
{
    prometheus_head(out, name, "histogram", help);
    prometheus_histogram(out, name, label, h, WORKQUEUE_BOUNDS);
}

static void write_queue(const struct kube_reconciler *r, struct buf *out)
{
    const struct kube_workqueue_stats q = kube_reconciler_queue(r);
    const struct kube_workqueue_unfinished u = kube_reconciler_unfinished(r);
    char label[96], in_braces[100];

    snprintf(label, sizeof(label), "name=\"%s\"", kube_reconciler_name(r));
    snprintf(in_braces, sizeof(in_braces), "{%s}", label);
    put(out, "workqueue_depth", in_braces, "gauge", "Keys that are due.", (double)q.depth);
    put(out, "workqueue_delayed", in_braces, "gauge", "Keys that become due later.", (double)q.delayed);
    put(out, "workqueue_processing", in_braces, "gauge", "Keys being worked on.", (double)q.processing);
    put(out, "workqueue_adds_total", in_braces, "counter", "Keys that became due.", (double)q.adds);
    put(out, "workqueue_retries_total", in_braces, "counter", "Keys that come again after a failure.",
        (double)q.retries);
    put_durations(out, "workqueue_queue_duration_seconds", label,
                  "How long keys were due before they were taken.", &q.queued);
    put_durations(out, "workqueue_work_duration_seconds", label, "How long keys were worked on.", &q.worked);
    put(out, "workqueue_unfinished_work_seconds", in_braces, "gauge",
        "Time spent so far on keys being worked on.", seconds(u.sum_ms));
    put(out, "workqueue_longest_running_processor_seconds", in_braces, "gauge",
        "How long the oldest of the keys being worked on has been.", seconds(u.longest_ms));
}

/* ---- the caches, one per resource */

static void write_caches(const struct prometheus_sources *s, struct buf *out, const char *family,
                         const char *help, bool failures)
{
    const struct kube_reconciler *r = s->reconciler;
    const struct kube_cache *c;
    const char *resource;

    prometheus_head(out, family, "counter", help);
    for (size_t i = 0; (c = kube_reconciler_cache(r, i, &resource)); i++)
        buf_printf(out, NULL, "%s{name=\"%s\",resource=\"%s\"} %" PRIu64 "\n", family,
                   kube_reconciler_name(r), resource,
                   failures ? kube_cache_stats(c).failures : kube_cache_stats(c).lists);
}

/* ---- the process */

/* client-go's metric name, and its code label for a request without an answer. */
static void write_requests(const struct http *http, struct buf *out)
{
    size_t n;
    const struct http_count *counts = http_counts(http, &n);

    prometheus_head(out, "rest_client_requests_total", "counter", "Requests to the API server.");
    for (size_t i = 0; i < n; i++) {
        char code[16] = "<error>";
        if (counts[i].status > 0)
            snprintf(code, sizeof(code), "%d", counts[i].status);
        buf_printf(out, NULL, "rest_client_requests_total{code=\"%s\",method=\"%s\"} %" PRIu64 "\n", code,
                   counts[i].method, counts[i].n);
    }
}

static void write_leader(const struct prometheus_sources *s, struct buf *out)
{
    char labels[300];

    snprintf(labels, sizeof(labels), "{name=\"%s\"}", s->lease);
    put(out, "leader_election_master_status", labels, "gauge", "1 while this process holds the lease.",
        s->leads);
}

/* 0 without /proc: no real process has 0. */
static uint64_t resident_bytes(void)
{
    unsigned long long pages;
    cleanup_fclose FILE *f = fopen("/proc/self/statm", "re");

    return f && fscanf(f, "%*u %llu", &pages) == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static double cpu_seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void write_process(struct buf *out)
{
    struct rusage used = {0};

    getrusage(RUSAGE_SELF, &used);
    put(out, "process_resident_memory_bytes", "", "gauge", "Resident memory.", (double)resident_bytes());
    put(out, "process_cpu_seconds_total", "", "counter", "CPU time, user and system.",
        cpu_seconds(&used.ru_utime) + cpu_seconds(&used.ru_stime));
}

void prometheus_write(const struct prometheus_sources *s, struct buf *out)
{
    write_queue(s->reconciler, out);
    write_caches(s, out, "reflector_lists_total", "Lists made.", false);
    write_caches(s, out, "reflector_failures_total", "Lists and watches that failed.", true);
    write_requests(s->http, out);
    if (s->lease)
        write_leader(s, out);
    write_process(out);
}
