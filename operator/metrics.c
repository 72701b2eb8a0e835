/* metrics.c - write the operator's own metrics in Prometheus' text format. */
#include "operator/metrics.h"
#include "kube/prometheus.h"
#include "kube/store.h"
#include "operator/api/jobtext.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- count jobs by namespace and phase, with a limit of named namespaces */

enum { PHASES_NAMESPACES = 100 };

struct phases_row {
    const char *ns;
    size_t jobs;
    size_t by_phase[JOB_PHASES];
};

static int by_namespace(const void *a, const void *b)
{
    return strcmp((*(const struct jobtext *const *)a)->ns, (*(const struct jobtext *const *)b)->ns);
}

static int by_size(const void *a, const void *b)
{
    const struct phases_row *x = a;
    const struct phases_row *y = b;

    if (x->jobs != y->jobs)
        return x->jobs > y->jobs ? -1 : 1;
    return strcmp(x->ns, y->ns);
}

static void add(struct phases_row *to, const struct phases_row *from)
{
    to->jobs += from->jobs;
    for (int i = 0; i < JOB_PHASES; i++)
        to->by_phase[i] += from->by_phase[i];
}

/* The values of `jobs` are struct jobtext. Returns at most PHASES_NAMESPACES + 1 rows. */
static const struct phases_row *phases_count(const struct kube_store *jobs, struct arena *a, size_t *ret_n)
{
    size_t n_jobs = 0;
    size_t n = 0;
    const struct jobtext **list = arena_array(a, kube_store_count(jobs) + 1, const struct jobtext *);

    for (const struct kube_store_entry *e = kube_store_first(jobs); e; e = kube_store_next(jobs, e))
        list[n_jobs++] = e->value;
    qsort(list, n_jobs, sizeof(const struct jobtext *), by_namespace);
    struct phases_row *rows = arena_array(a, n_jobs + 1, struct phases_row);
    for (size_t i = 0; i < n_jobs; i++) {
        if (n == 0 || strcmp(rows[n - 1].ns, list[i]->ns) != 0)
            rows[n++].ns = list[i]->ns;
        rows[n - 1].jobs++;
        rows[n - 1].by_phase[list[i]->phase]++;
    }
    qsort(rows, n, sizeof(*rows), by_size);
    struct phases_row others = {.ns = ""};
    for (; n > PHASES_NAMESPACES; n--)
        add(&others, &rows[n - 1]);
    if (others.jobs)
        rows[n++] = others;
    *ret_n = n;
    return rows;
}

/* ---- the metrics */

static void write_phases(const struct controller *c, struct buf *out)
{
    cleanup_arena struct arena a = {0};
    size_t n;
    const struct phases_row *rows = phases_count(controller_jobs(c), &a, &n);

    prometheus_head(
        out, "pytorchtrainingjob_jobs", "gauge",
        "Jobs by namespace and phase; namespace \"\" is the sum of all but the 100 with most jobs.");
    for (size_t i = 0; i < n; i++) {
        for (int phase = 0; phase < JOB_PHASES; phase++) {
            if (!rows[i].by_phase[phase])
                continue;
            buf_puts(out, "pytorchtrainingjob_jobs{namespace=\"", NULL);
            prometheus_label(out, rows[i].ns);
            buf_printf(out, NULL, "\",phase=\"%s\"} %zu\n",
                       phase == JOB_NONE ? "New" : job_phase_name((enum job_phase)phase),
                       rows[i].by_phase[phase]);
        }
    }
}

static void write_latencies(const struct controller_counts *c, struct buf *out)
{
    const struct {
        const char *name, *help;
        const struct histogram *waits;
    } families[] = {
        {"pytorchtrainingjob_first_pod_seconds", "From a job's creation, or release, to its first pod.",
         &c->first_pod},
        {"pytorchtrainingjob_running_seconds",
         "From a job's creation, or release, to all of its pods running.", &c->running},
        {"pytorchtrainingjob_restart_seconds", "From a failure to all pods running again.",
         &c->running_again},
    };

    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        prometheus_head(out, families[i].name, "histogram", families[i].help);
        prometheus_histogram(out, families[i].name, "", families[i].waits, LATENCY_BOUNDS);
    }
}

void metrics_write(const struct metrics_sources *s, struct buf *out)
{
    struct controller_counts c = controller_counts(s->controller);
    struct watches_counts w = controller_cached(s->controller);
    struct kube_recorder_stats r = kube_recorder_stats(s->recorder);
    char version[64];
    const struct prometheus_family families[] = {
        {"pytorchtrainingjob_created_total", "", "counter", "Jobs started.", c.created},
        {"pytorchtrainingjob_succeeded_total", "", "counter", "Jobs that succeeded.", c.succeeded},
        {"pytorchtrainingjob_failed_total", "", "counter", "Jobs that failed.", c.failed},
        {"pytorchtrainingjob_restarted_total", "", "counter", "Attempts begun after a failure.", c.restarted},
        {"pytorchtrainingjob_deleted_total", "", "counter", "Jobs that were deleted.", c.deleted},
        {"pytorchtrainingjob_pods_created_total", "", "counter", "Pods created.", c.pods_created},
        {"pytorchtrainingjob_pods_deleted_total", "", "counter", "Pods deleted.", c.pods_deleted},
        {"pytorchtrainingjob_passes_total", "", "counter", "Reconciles of a job that planned.", c.passes},
        {"pytorchtrainingjob_pass_failures_total", "", "counter",
         "Reconciles that ended with a failed request.", c.failures},
        {"pytorchtrainingjob_progress_polls_total", "{result=\"ok\"}", "counter",
         "Requests for the progress of running jobs; dropped: the answer was of another job or attempt.",
         c.polls.ok},
        {"pytorchtrainingjob_progress_polls_total", "{result=\"failed\"}", "", "", c.polls.failed},
        {"pytorchtrainingjob_progress_polls_total", "{result=\"dropped\"}", "", "", c.polls.dropped},
        {"pytorchtrainingjob_cached_jobs", "", "gauge", "Jobs in the local copy.", w.jobs},
        {"pytorchtrainingjob_cached_pods", "", "gauge", "Pods in the local copy.", w.pods},
        {"pytorchtrainingjob_cached_pod_bytes", "", "gauge", "Memory of the pods in the local copy.",
         w.pod_bytes},
        {"pytorchtrainingjob_pass_bytes", "", "gauge", "Memory of the reconciles in progress.", c.pass_bytes},
        {"ptj_unreadable_objects", "{resource=\"pods\"}", "gauge",
         "Objects in the local copy of which only the names could be read.", w.unreadable[CHILD_POD]},
        {"ptj_unreadable_objects", "{resource=\"services\"}", "", "", w.unreadable[CHILD_SERVICE]},
        {"ptj_unreadable_objects", "{resource=\"deployments\"}", "", "", w.unreadable[CHILD_DEPLOYMENT]},
        {"ptj_unreadable_objects", "{resource=\"workloads\"}", "", "", w.unreadable[CHILD_WORKLOAD]},
        {"ptj_unreadable_objects", "{resource=\"pytorchtrainingjobs\"}", "", "", w.unreadable[CHILD_JOB]},
        {"pytorchtrainingjob_caches_synced", "", "gauge", "1 once the local copies are complete.",
         kube_reconciler_synced(controller_reconciler(s->controller))},
        {"pytorchtrainingjob_events_sent_total", "", "counter", "Events that the API server accepted.",
         r.sent},
        {"pytorchtrainingjob_events_dropped_total", "", "counter", "Events that were not sent.",
         r.dropped + r.failed},
        {"pytorchtrainingjob_build_info", version, "gauge", "The program.", 1},
    };

    snprintf(version, sizeof(version), "{version=\"%s\"}", s->version);
    prometheus_families(out, families, ARRAY_LEN(families));
    write_latencies(&c, out);
    /* Only from the leader, so that a sum over all replicas is right. */
    if (kube_reconciler_leads(controller_reconciler(s->controller)))
        write_phases(s->controller, out);
}
