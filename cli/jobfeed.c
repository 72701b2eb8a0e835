/* jobfeed.c - the streams of jobs, of their events and of pods, and the report of a lost connection. */
#include "cli/jobfeed.h"

#include "cli/shown.h"
#include "common/json.h"
#include "common/memory.h"
#include "kube/reflector.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

#include <stdio.h>
#include <stdlib.h>

/* One collection. */
struct stream {
    struct jobfeed *feed;
    const struct jobfeed_sink *to;
    struct kube_request what; /* with its selectors; also for messages */
    char selector[400];
    struct reflector *reflector; /* NULL: not begun */
    struct kube_loop_timer again;
    int failures;      /* in a row */
    int64_t failed_ms; /* when the first failure since the last list happened; 0: none did */
    int64_t synced_ms; /* the last time, monotonic */
    bool lost;         /* it failed again after a first failure, and no list came since */
    bool synced;       /* a list was complete, ever */
};

struct jobfeed {
    struct jobfeed_options o;
    struct stream jobs, events, pods;
    struct kube_loop_timer late;
    struct jobfeed_trouble trouble;
    bool over;
};

static int64_t now_mono(const struct jobfeed *f)
{
    return kube_loop_now_ms(f->o.session->loop);
}

static void report(struct jobfeed *f)
{
    if (f->o.state)
        f->o.state(f->o.ctx, &f->trouble);
}

static void begin_late(struct jobfeed *f)
{
    kube_loop_timer_set(f->o.session->loop, &f->late, now_mono(f) + JOBFEED_LATE_MS);
}

static void on_late(void *ctx)
{
    struct jobfeed *f = ctx;

    f->trouble.since_ms = kube_loop_wall_ms(f->o.session->loop) - JOBFEED_LATE_MS;
    report(f);
}

/* ---- what a reflector shows */

static void on_begin(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;

    if (s == &f->jobs && !s->synced && !f->trouble.since_ms && !kube_loop_timer_is_set(&f->late))
        begin_late(f);
    /* The reflector was sooner, as where a version expired. */
    kube_loop_timer_cancel(f->o.session->loop, &s->again);
    if (s->to->list_begin)
        s->to->list_begin(f->o.ctx);
}

/* A list is complete. */
static void found(struct stream *s)
{
    struct jobfeed *f = s->feed;
    const bool of_events = s == &f->events;
    const bool reported = of_events ? f->trouble.events[0] : f->trouble.since_ms;

    s->synced_ms = now_mono(f);
    s->failed_ms = 0;
    s->lost = false;
    s->synced = true;
    if (of_events) {
        s->failures = 0;
        f->trouble.events[0] = '\0';
    } else if (f->jobs.lost || f->pods.lost || !f->jobs.synced) {
        return;
    } else {
        f->trouble.since_ms = 0;
        f->trouble.why[0] = '\0';
    }
    if (reported)
        report(f);
}

static void on_end(void *ctx)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    const bool of_jobs = s == &f->jobs;

    if (of_jobs)
        kube_loop_timer_cancel(f->o.session->loop, &f->late);
    if (s->to->list_end)
        s->to->list_end(f->o.ctx);
    if (of_jobs && f->o.events && (!s->synced || f->events.failures))
        kube_loop_timer_set(f->o.session->loop, &f->events.again, now_mono(f));
    found(s);
}

static void on_object(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    if (s->to->object)
        s->to->object(s->feed->o.ctx, object);
}

static void on_removed(void *ctx, const cJSON *object)
{
    const struct stream *s = ctx;

    if (s->to->removed)
        s->to->removed(s->feed->o.ctx, object);
}

/* Of a job its names are all that can be shown. */
static void on_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    const struct stream *s = ctx;

    (void)why;
    if (s == &s->feed->jobs && json_find(names, (const char *[]){"metadata", "uid", NULL}))
        on_object(ctx, names);
}

/* ---- failures */

/* Sooner than the reflector itself would try again. */
static void list_later(struct stream *s)
{
    struct kube_loop *loop = s->feed->o.session->loop;

    if (!s->failed_ms)
        s->failed_ms = kube_loop_wall_ms(loop);
    if (now_mono(s->feed) - s->synced_ms >= JOBFEED_GOOD_MS)
        s->failures = 0;
    s->synced_ms = INT64_MAX / 2;
    kube_loop_timer_set(loop, &s->again,
                        now_mono(s->feed) +
                            backoff_delay_ms(JOBFEED_RETRY_MS, JOBFEED_RETRY_MAX_MS, s->failures++));
    s->lost = s->failures > 1;
}

static void on_lost(struct stream *s, const struct err *err)
{
    struct jobfeed *f = s->feed;
    struct err shown = *err;

    if (f->over)
        return;
    (void)session_explain(f->o.session, &s->what, &shown);
    if (!s->synced || f->o.session->proxy.ended) { /* kubectl is not started again */
        f->over = true;
        kube_loop_timer_cancel(f->o.session->loop, &f->late);
        f->o.failed(f->o.ctx, &shown);
        return;
    }
    list_later(s);
    /* A connection that is cut and restored at once is not reported. */
    if (!s->lost)
        return;
    if (!f->trouble.since_ms)
        f->trouble.since_ms = s->failed_ms;
    shown_text(f->trouble.why, sizeof(f->trouble.why), shown.msg);
    report(f);
}

/* Of events only a missing permission is news: the other streams report a lost connection. */
static void on_problem(void *ctx, const struct err *err)
{
    struct stream *s = ctx;
    struct jobfeed *f = s->feed;
    struct err shown = *err;

    if (s != &f->events) {
        on_lost(s, err);
        return;
    }
    s->failures++;
    if (err->code != 403)
        return;
    (void)session_explain(f->o.session, &s->what, &shown);
    shown_text(f->trouble.events, sizeof(f->trouble.events), shown.msg);
    report(f);
}

/* ---- streams */

/* Begin, or list again at once. */
static void list(void *ctx)
{
    struct stream *s = ctx;
    struct session *session = s->feed->o.session;
    const struct watcher_sink sink = {.ctx = s,
                                      .replace_begin = on_begin,
                                      .replace_end = on_end,
                                      .upsert = on_object,
                                      .removed = on_removed,
                                      .unreadable = on_unreadable,
                                      .problem = on_problem};
    const struct kube_watcher_options options = {.resource = *s->what.resource,
                                                 .ns = s->what.ns,
                                                 .label_selector = s->what.label_selector,
                                                 .field_selector = s->what.field_selector,
                                                 .seed = (uint64_t)kube_loop_wall_ms(session->loop)};

    if (s->reflector) {
        reflector_relist(s->reflector, true);
        return;
    }
    s->reflector = reflector_new(session->loop, &session->api, &options, &sink);
}

static void end(struct stream *s)
{
    kube_loop_timer_cancel(s->feed->o.session->loop, &s->again);
    reflector_free(s->reflector);
}

static void prepare(struct stream *s, struct jobfeed *f, const struct kube_resource *resource,
                    const struct jobfeed_sink *to)
{
    s->feed = f;
    s->to = to;
    s->what = (struct kube_request){.verb = KUBE_WATCH, .resource = resource, .ns = f->o.ns};
    s->again = (struct kube_loop_timer){.fire = list, .ctx = s};
}

struct jobfeed *jobfeed_new(const struct jobfeed_options *options)
{
    struct jobfeed *f = memory_must(calloc(1, sizeof(*f)));
    const char *name = options->name;

    f->o = *options;
    prepare(&f->jobs, f, &SESSION_JOBS, &f->o.jobs);
    prepare(&f->events, f, &KUBE_EVENTS, f->o.events);
    prepare(&f->pods, f, &KUBE_PODS, f->o.pods);
    snprintf(f->jobs.selector, sizeof(f->jobs.selector), "metadata.name=%.253s", name ? name : "");
    snprintf(f->events.selector, sizeof(f->events.selector), "involvedObject.kind=" TRAINJOB_KIND "%s%.253s",
             name ? ",involvedObject.name=" : "", name ? name : "");
    snprintf(f->pods.selector, sizeof(f->pods.selector), LABEL_JOB "=%.253s", name ? name : "");
    f->jobs.what.label_selector = f->o.label_selector;
    f->jobs.what.field_selector = name ? f->jobs.selector : NULL;
    f->events.what.field_selector = f->events.selector;
    f->pods.what.label_selector = f->pods.selector;
    f->late = (struct kube_loop_timer){.fire = on_late, .ctx = f};
    if (!session_may_ask(f->o.session->http))
        begin_late(f);
    list(&f->jobs);
    if (f->o.pods)
        list(&f->pods);
    return f;
}

void jobfeed_list_pods(struct jobfeed *f)
{
    kube_loop_timer_cancel(f->o.session->loop, &f->pods.again);
    list(&f->pods);
}

void jobfeed_free(struct jobfeed *f)
{
    if (!f)
        return;
    kube_loop_timer_cancel(f->o.session->loop, &f->late);
    end(&f->jobs);
    end(&f->events);
    end(&f->pods);
    free(f);
}
