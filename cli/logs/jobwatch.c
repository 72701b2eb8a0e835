/* jobwatch.c - two reflectors: the job by its name, its pods by their label. */
#include "cli/logs/jobwatch.h"

#include "common/json.h"
#include "common/memory.h"
#include "kube/reflector.h"

#include <stdio.h>

struct jobwatch {
    struct session *session;
    struct jobwatch_sink sink;
    char by_label[sizeof(LABEL_JOB) + DECODE_NAME_BYTES + 2];
    struct reflector *job, *pods;
};

static void on_job(void *ctx, const cJSON *object)
{
    struct jobwatch *w = ctx;
    struct err ignored;
    struct trainjob *job = trainjob_decode(cJSON_Duplicate(object, true), &ignored);

    if (job)
        w->sink.job(w->sink.ctx, job);
}

static void on_job_gone(void *ctx, const cJSON *object)
{
    struct jobwatch *w = ctx;

    (void)object;
    w->sink.job_gone(w->sink.ctx);
}

static void on_pod(void *ctx, const cJSON *object)
{
    struct jobwatch *w = ctx;
    struct err ignored;
    struct pod *pod = pod_decode(object, &ignored);

    if (pod)
        w->sink.pod(w->sink.ctx, pod);
    pod_free(pod);
}

static void on_pod_gone(void *ctx, const cJSON *object)
{
    struct jobwatch *w = ctx;
    const char *uid = json_str(json_find(object, (const char *[]){"metadata", NULL}), "uid");

    if (uid)
        w->sink.pod_gone(w->sink.ctx, uid);
}

static void on_pods_begin(void *ctx)
{
    struct jobwatch *w = ctx;

    w->sink.pods_begin(w->sink.ctx);
}

static void on_pods_end(void *ctx)
{
    struct jobwatch *w = ctx;

    w->sink.pods_end(w->sink.ctx);
}

static void on_problem(struct jobwatch *w, const struct kube_resource *resource, const struct err *why)
{
    const struct kube_request right = {.verb = KUBE_WATCH, .resource = resource, .ns = w->session->ns};
    struct err err = *why;

    if (err.code == 403) {
        (void)session_explain(w->session, &right, &err);
        w->sink.fatal(w->sink.ctx, &err);
    } else {
        w->sink.lost(w->sink.ctx, &err);
    }
}

static void on_job_problem(void *ctx, const struct err *err)
{
    on_problem(ctx, &SESSION_JOBS, err);
}

static void on_pod_problem(void *ctx, const struct err *err)
{
    on_problem(ctx, &KUBE_PODS, err);
}

static void ignore_list(void *ctx)
{
    (void)ctx;
}

static void ignore_unreadable(void *ctx, const cJSON *names, const struct err *why)
{
    (void)ctx, (void)names, (void)why;
}

void jobwatch_list_pods(struct jobwatch *w)
{
    struct session *s = w->session;
    const struct watcher_sink pods = {.ctx = w,
                                      .replace_begin = on_pods_begin,
                                      .replace_end = on_pods_end,
                                      .upsert = on_pod,
                                      .removed = on_pod_gone,
                                      .unreadable = ignore_unreadable,
                                      .problem = on_pod_problem};

    reflector_free(w->pods);
    w->pods = reflector_new(s->loop, &s->api,
                            &(struct kube_watcher_options){
                                .resource = KUBE_PODS, .ns = s->ns, .label_selector = w->by_label, .seed = 2},
                            &pods);
    reflector_start(w->pods);
}

struct jobwatch *jobwatch_new(struct session *s, const char *job, const struct jobwatch_sink *sink)
{
    struct jobwatch *w = memory_must(calloc(1, sizeof(*w)));
    const struct watcher_sink jobs = {.ctx = w,
                                      .replace_begin = ignore_list,
                                      .replace_end = ignore_list,
                                      .upsert = on_job,
                                      .removed = on_job_gone,
                                      .unreadable = ignore_unreadable,
                                      .problem = on_job_problem};
    char by_name[DECODE_NAME_BYTES + 32];

    *w = (struct jobwatch){.session = s, .sink = *sink};
    snprintf(by_name, sizeof(by_name), "metadata.name=%s", job);
    snprintf(w->by_label, sizeof(w->by_label), LABEL_JOB "=%s", job);
    w->job = reflector_new(s->loop, &s->api,
                           &(struct kube_watcher_options){
                               .resource = SESSION_JOBS, .ns = s->ns, .field_selector = by_name, .seed = 1},
                           &jobs);
    reflector_start(w->job);
    jobwatch_list_pods(w);
    return w;
}

void jobwatch_free(struct jobwatch *w)
{
    if (!w)
        return;
    reflector_free(w->job);
    reflector_free(w->pods);
    free(w);
}
