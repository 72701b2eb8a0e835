/* jobfeed.c - the streams of jobs, of their events and of pods, and the report of a lost connection. */
#include "cli/jobfeed.h"

#include "cli/shown.h"
#include "cli/stream.h"
#include "common/json.h"
#include "common/memory.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jobfeed {
    struct jobfeed_options o;
    struct stream jobs, events, pods;
    char fields[320], event_fields[400], pod_labels[320];
    struct kube_loop_timer late;
    struct jobfeed_trouble trouble;
    bool over;
};

static const struct jobfeed *owner_of(const struct stream *s)
{
    return s->owner;
}

static void on_lost(void *ctx, const struct err *err)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->owner;
    struct err shown = *err;

    if (f->over)
        return;
    stream_failed(s);
    (void)session_explain(f->o.session, &s->what, &shown);
    if (!s->synced || f->o.session->proxy.ended) { /* kubectl is not started again */
        f->over = true;
        kube_loop_timer_cancel(f->o.session->loop, &f->late);
        f->o.failed(f->o.ctx, &shown);
        return;
    }
    /* A connection that is cut and restored at once is not reported. */
    if (!s->lost)
        return;
    if (!f->trouble.since_ms)
        f->trouble.since_ms = s->failed_ms;
    shown_text(f->trouble.why, sizeof(f->trouble.why), shown.msg);
    f->o.state(f->o.ctx);
}

/* The other streams report a lost connection; here only a missing permission is news. */
static void on_events_problem(void *ctx, const struct err *err)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->owner;
    struct err shown = *err;

    s->failures++;
    if (err->code != 403)
        return;
    (void)session_explain(f->o.session, &s->what, &shown);
    shown_text(f->trouble.events, sizeof(f->trouble.events), shown.msg);
    f->o.state(f->o.ctx);
}

/* A list is complete. */
static void found(struct stream *s)
{
    struct jobfeed *f = s->owner;
    const bool reported = f->trouble.since_ms;

    stream_found(s);
    if (f->jobs.lost || f->pods.lost || !f->jobs.synced)
        return;
    f->trouble.since_ms = 0;
    f->trouble.why[0] = '\0';
    if (reported)
        f->o.state(f->o.ctx);
}

static void begin_late(struct jobfeed *f)
{
    struct kube_loop *l = f->o.session->loop;

    kube_loop_timer_set(l, &f->late, kube_loop_now_ms(l) + JOBFEED_LATE_MS);
}

static void on_jobs_begin(void *ctx)
{
    const struct stream *s = ctx;
    struct jobfeed *f = s->owner;

    if (!s->synced && !f->trouble.since_ms && !kube_loop_timer_is_set(&f->late))
        begin_late(f);
    f->o.list_begin(f->o.ctx);
}

static void on_jobs_end(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->owner;
    const bool is_first = !s->synced;

    kube_loop_timer_cancel(f->o.session->loop, &f->late);
    f->o.list_end(f->o.ctx);
    if (f->o.events && (is_first || f->events.failures))
        stream_begin_later(&f->events, 0);
    found(s);
}

static void on_job(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    owner_of(s)->o.job(owner_of(s)->o.ctx, object);
}

static void on_job_removed(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});

    owner_of(s)->o.removed(owner_of(s)->o.ctx, json_str(meta, "namespace"), json_str(meta, "name"));
}

/* Its names are all that can be shown. */
static void on_job_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)why;
    if (json_find(names, (const char *[]){"metadata", "uid", NULL}))
        on_job(ctx, names);
}

static void on_events_end(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->owner;
    const bool reported = f->trouble.events[0];

    s->failures = 0;
    f->trouble.events[0] = '\0';
    if (reported)
        f->o.state(f->o.ctx);
}

static void on_event(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    owner_of(s)->o.event(owner_of(s)->o.ctx, object);
}

static void on_pods_begin(void *ctx)
{
    const struct stream *s = ctx;

    owner_of(s)->o.pods->list_begin(owner_of(s)->o.ctx);
}

static void on_pods_end(void *ctx)
{
    struct stream *s = ctx;

    owner_of(s)->o.pods->list_end(owner_of(s)->o.ctx);
    found(s);
}

static void on_pod(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    owner_of(s)->o.pods->pod(owner_of(s)->o.ctx, object);
}

static void on_pod_removed(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    owner_of(s)->o.pods->removed(owner_of(s)->o.ctx, object);
}

static void pass_over(void *ctx)
{
    (void)ctx;
}

static void pass_over_object(void *ctx, const cJSON *object)
{
    (void)ctx, (void)object;
}

static void pass_over_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)ctx, (void)names, (void)why;
}

static const struct watcher_sink JOBS = {.replace_begin = on_jobs_begin,
                                         .replace_end = on_jobs_end,
                                         .upsert = on_job,
                                         .removed = on_job_removed,
                                         .unreadable = on_job_unreadable,
                                         .problem = on_lost},
                                 EVENTS = {.replace_begin = pass_over,
                                           .replace_end = on_events_end,
                                           .upsert = on_event,
                                           .removed = pass_over_object,
                                           .unreadable = pass_over_unreadable,
                                           .problem = on_events_problem},
                                 PODS = {.replace_begin = on_pods_begin,
                                         .replace_end = on_pods_end,
                                         .upsert = on_pod,
                                         .removed = on_pod_removed,
                                         .unreadable = pass_over_unreadable,
                                         .problem = on_lost};

static void on_late(void *ctx)
{
    struct jobfeed *f = ctx;

    f->trouble.since_ms = kube_loop_wall_ms(f->o.session->loop) - JOBFEED_LATE_MS;
    f->o.state(f->o.ctx);
}

static void prepare(struct stream *s, struct jobfeed *f, const struct kube_resource *resource,
                    const char *fields, const char *labels, const struct watcher_sink *sink)
{
    const struct kube_request what = {.verb = KUBE_WATCH,
                                      .resource = resource,
                                      .ns = f->o.ns,
                                      .label_selector = labels,
                                      .field_selector = fields && fields[0] ? fields : NULL};

    stream_init(s, f->o.session, f, &what, sink);
}

struct jobfeed *jobfeed_new(const struct jobfeed_options *options)
{
    struct jobfeed *f = memory_must(calloc(1, sizeof(*f)));

    f->o = *options;
    if (f->o.name)
        snprintf(f->fields, sizeof(f->fields), "metadata.name=%.253s", f->o.name);
    snprintf(f->event_fields, sizeof(f->event_fields), "involvedObject.kind=" TRAINJOB_KIND "%s%.253s",
             f->o.name ? ",involvedObject.name=" : "", f->o.name ? f->o.name : "");
    if (f->o.pods)
        snprintf(f->pod_labels, sizeof(f->pod_labels), LABEL_JOB "=%.253s", f->o.name);
    prepare(&f->jobs, f, &SESSION_JOBS, f->fields, f->o.label_selector, &JOBS);
    prepare(&f->events, f, &KUBE_EVENTS, f->event_fields, NULL, &EVENTS);
    prepare(&f->pods, f, &KUBE_PODS, NULL, f->pod_labels, &PODS);
    f->late = (struct kube_loop_timer){.fire = on_late, .ctx = f};
    if (!session_may_ask(f->o.session->http))
        begin_late(f);
    stream_begin(&f->jobs);
    if (f->o.pods)
        stream_begin(&f->pods);
    return f;
}

void jobfeed_list_pods(struct jobfeed *f)
{
    stream_end(&f->pods);
    stream_begin(&f->pods);
}

void jobfeed_free(struct jobfeed *f)
{
    if (!f)
        return;
    kube_loop_timer_cancel(f->o.session->loop, &f->late);
    stream_end(&f->jobs);
    stream_end(&f->events);
    stream_end(&f->pods);
    free(f);
}

const struct jobfeed_trouble *jobfeed_trouble(const struct jobfeed *f)
{
    return &f->trouble;
}
