/* follow.c - two watches, one feed for each pod, and a printer that is run after each of them moved. */
#include "cli/logs/follow.h"

#include "cli/shown.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/text.h"
#include "kube/reflector.h"
#include "operator/api/pod.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    OUT_BYTES = MERGE_LINE_BYTES + 1024,
    NOTE_BYTES = 8 << 10,
    LINGER_MS = 40000, /* after the job's end its other pods have 30 s to end */
};

struct follow {
    struct session *session;
    const struct follow_options *options;
    struct trainjob *job;
    struct reflector *job_watch, *pod_watch;
    struct merge *merge;
    struct feed feeds[MERGE_STREAMS]; /* by the number of their stream */
    char labels[MERGE_STREAMS][DECODE_NAME_BYTES + 1];
    struct feed_sink sink;
    struct kube_loop_task printing;
    struct kube_loop_timer print_again, lingering;
    bool synced, deleted, finished;
    bool has_failed; /* some log was not read */
    bool unread;     /* nobody reads stdout any more */
    bool is_lost;    /* the API server, as was told */
    int32_t attempt;
    bool has_pods;   /* of the present attempt */
    char waits[512]; /* what was said to be waited for: each reason once in an attempt */
    struct err err;
};

/* A line of our own, on stderr: stdout has the lines of the pods alone. */
static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *fmt, ...)
{
    cleanup_buf struct buf shown = BUF_INIT(2 * NOTE_BYTES);
    char text[NOTE_BYTES];
    struct err ignored;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    (void)shown_line(&shown, sv_from(text), &ignored);
    fflush(stdout);
    fprintf(stderr, "kubectl ptj logs: %s\n", buf_str(&shown));
}

static void print_soon(struct follow *f)
{
    kube_loop_task_add(f->session->loop, &f->printing);
}

static void end_with(struct follow *f, const struct err *err)
{
    if (!f->err.kind)
        f->err = *err;
    kube_loop_stop(f->session->loop);
}

static void on_moved(void *ctx, struct feed *feed)
{
    struct follow *f = ctx;

    f->is_lost = false;
    f->has_failed |= feed->failed;
    print_soon(f);
}

static void on_trouble(void *ctx, struct feed *feed, const struct err *err)
{
    (void)ctx;
    note("pod %s: %s%s", feed->pod, err->msg, feed->failed ? "" : "; trying again");
}

static void on_fatal(void *ctx, const struct err *err)
{
    end_with(ctx, err);
}

/* Returns false when it cannot be written. */
static bool print_lines(struct follow *f, int64_t now_ms)
{
    cleanup_buf struct buf out = BUF_INIT(2 * OUT_BYTES);
    struct merge_line line;
    struct err impossible;

    while (merge_next(f->merge, now_ms, &line)) {
        buf_clear(&out);
        (void)view_line(&out, &f->options->view, f->labels[line.stream], line.stream, &line, &impossible);
        /* Of a line-buffered stream fwrite may count what it failed to write. */
        if (fwrite(out.data, 1, out.len, stdout) != out.len || ferror(stdout))
            return false;
    }
    return fflush(stdout) == 0;
}

static bool all_done(const struct follow *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->feeds[i].used && !f->feeds[i].done)
            return false;
    return merge_is_empty(f->merge);
}

static void print(void *ctx)
{
    struct follow *f = ctx;
    const int64_t now_ms = kube_loop_now_ms(f->session->loop);
    struct err err;

    if (!print_lines(f, now_ms)) {
        f->unread = errno == EPIPE;
        err_errno(&err, ERR_FATAL, errno, "stdout");
        end_with(f, &err);
        return;
    }
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_release(&f->feeds[i]);
    const int64_t due_ms = merge_due_ms(f->merge, now_ms);
    if (due_ms != INT64_MAX)
        kube_loop_timer_set(f->session->loop, &f->print_again, due_ms);
    if (f->synced && (f->finished || f->deleted || !f->options->follow) && all_done(f))
        kube_loop_stop(f->session->loop);
}

static struct feed *feed_of(struct follow *f, const char *uid)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->feeds[i].used && !strcmp(f->feeds[i].uid, uid))
            return &f->feeds[i];
    return NULL;
}

/* A stream's number may come again when all its lines were printed. */
static void begin_feed(struct follow *f, const struct pod *pod, bool ended)
{
    const size_t job_len = strlen(f->job->name);
    const bool has_prefix = !strncmp(pod->name, f->job->name, job_len) && pod->name[job_len] == '-';
    const int i = merge_open(f->merge, kube_loop_now_ms(f->session->loop));

    if (i < 0) {
        note("pod %s: not shown: %d logs are read already", pod->name, MERGE_STREAMS);
        return;
    }
    struct feed *feed = &f->feeds[i];
    *feed = (struct feed){.session = f->session,
                          .merge = f->merge,
                          .options = &f->options->feed,
                          .sink = &f->sink,
                          .stream = i,
                          .once = !f->options->follow || f->finished,
                          .ended = ended,
                          .listed = true};
    snprintf(feed->pod, sizeof(feed->pod), "%s", pod->name);
    snprintf(feed->uid, sizeof(feed->uid), "%s", pod->uid);
    snprintf(feed->container, sizeof(feed->container), "%s", pod->training.name);
    snprintf(f->labels[i], sizeof(f->labels[i]), "%s", pod->name + (has_prefix ? job_len + 1 : 0));
    f->has_pods = true;
    feed_begin(feed);
}

static void note_waiting(struct follow *f, const char *what, const char *reason, const char *message)
{
    char mark[DECODE_REASON_BYTES + 3];

    snprintf(mark, sizeof(mark), "/%s/", reason);
    if (!f->options->follow || f->finished || strstr(f->waits, mark))
        return;
    text_add(f->waits, sizeof(f->waits), "%s", mark);
    note("waiting for %s: %s%s%s", what, reason, message && message[0] ? ": " : "", message ? message : "");
}

static void wait_for_pod(struct follow *f, const struct pod *pod)
{
    static const char *const STARTS[] = {"", "ContainerCreating", "PodInitializing"};
    const struct pod_container *c = pod->init.reason[0] ? &pod->init : &pod->training;
    const char *reason = c->reason;
    char what[DECODE_NAME_BYTES + 8];

    f->has_pods = true;
    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->feeds[i].used && !f->feeds[i].done)
            return; /* something is shown: that another pod is late shows in `kubectl ptj why` */
    for (size_t i = 0; i < ARRAY_LEN(STARTS); i++)
        reason = strcmp(c->reason, STARTS[i]) == 0 ? "it is being started" : reason;
    snprintf(what, sizeof(what), "pod %s", pod->name);
    if (pod->unschedulable[0])
        note_waiting(f, what, "Unschedulable", pod->unschedulable);
    else
        note_waiting(f, what, reason, c->message);
}

static bool is_ours(const struct follow *f, const struct pod *pod)
{
    return !strcmp(pod->owner_uid, f->job->uid) &&
           ranks_have_pod(&f->options->ranks, &f->job->spec, pod->type, pod->index);
}

static void on_pod(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;
    struct err err;
    struct pod *pod = pod_decode(object, &err);

    if (!pod)
        return;
    struct feed *feed = feed_of(f, pod->uid);
    const bool ended = pod->training.state == CONTAINER_TERMINATED;
    if (feed) {
        feed->listed = true;
        feed->ended |= ended;
        feed_update(feed);
    } else if (is_ours(f, pod) && (ended || pod->training.state == CONTAINER_RUNNING)) {
        begin_feed(f, pod, ended);
    } else if (is_ours(f, pod) && !pod_ended(pod)) {
        wait_for_pod(f, pod);
    }
    pod_free(pod);
    print_soon(f);
}

static void pod_is_gone(struct follow *f, struct feed *feed)
{
    feed->gone = feed->ended = true;
    feed_update(feed);
    print_soon(f);
}

static void on_pod_removed(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;
    const char *uid = json_str(json_find(object, (const char *[]){"metadata", NULL}), "uid");
    struct feed *feed = uid ? feed_of(f, uid) : NULL;

    if (feed)
        pod_is_gone(f, feed);
}

static void on_pods_begin(void *ctx)
{
    struct follow *f = ctx;

    for (int i = 0; i < MERGE_STREAMS; i++)
        f->feeds[i].listed = false;
}

static void wait_for_job(struct follow *f)
{
    const struct jobstatus *st = &f->job->status;
    const struct condition *running = &st->conditions[COND_RUNNING];
    const struct condition *invalid = &st->conditions[COND_INVALID_SPEC];
    const char *phase = st->phase == JOB_NONE ? "the job has no status yet" : job_phase_name(st->phase);

    if (!f->has_pods)
        note_waiting(f, "pods", st->reason ? st->reason : phase,
                     invalid->state == COND_TRUE ? invalid->message : running->message);
}

static void on_pods_end(void *ctx)
{
    struct follow *f = ctx;

    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->feeds[i].used && !f->feeds[i].done && !f->feeds[i].listed)
            pod_is_gone(f, &f->feeds[i]);
    f->synced = true;
    f->is_lost = false;
    wait_for_job(f);
    print_soon(f);
}

static void linger_no_more(void *ctx)
{
    struct follow *f = ctx;

    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_close(&f->feeds[i]);
    print_soon(f);
}

/* The logs of a job that ended are read to their ends, those of pods that go on for a while. */
static void see_end(struct follow *f)
{
    if (f->finished || !jobstatus_finished(&f->job->status))
        return;
    f->finished = true;
    kube_loop_timer_set(f->session->loop, &f->lingering, kube_loop_now_ms(f->session->loop) + LINGER_MS);
}

static void see_attempt(struct follow *f)
{
    const struct jobstatus *st = &f->job->status;
    const struct condition *why = &st->conditions[COND_REPLICA_FAILURE];

    if (st->attempt <= f->attempt)
        return;
    f->attempt = st->attempt;
    f->waits[0] = '\0';
    f->has_pods = false;
    if (f->options->follow && !f->finished)
        note("attempt %d of %s begins%s%s", st->attempt, f->job->name,
             why->state == COND_TRUE && why->message && why->message[0] ? ": " : "",
             why->state == COND_TRUE && why->message ? why->message : "");
}

static void on_job(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;
    struct err err;
    struct trainjob *job = trainjob_decode(cJSON_Duplicate(object, true), &err);

    if (!job)
        return;
    f->deleted |= strcmp(job->uid, f->job->uid) != 0; /* another of the same name */
    if (f->deleted) {
        trainjob_free(job);
    } else {
        trainjob_free(f->job);
        f->job = job;
        see_attempt(f);
        see_end(f);
        if (f->synced)
            wait_for_job(f);
    }
    print_soon(f);
}

static void on_job_removed(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;

    (void)object;
    f->deleted = true;
    print_soon(f);
}

static void on_problem(struct follow *f, const struct kube_resource *resource, const struct err *why)
{
    const struct kube_request right = {.verb = KUBE_WATCH, .resource = resource, .ns = f->session->ns};
    struct err err = *why;

    if (err.code == 403) {
        (void)session_explain(f->session, &right, &err);
        end_with(f, &err);
    } else if (!f->is_lost) {
        f->is_lost = true;
        note("%s; trying again", err.msg);
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
    (void)ctx, (void)names;
    note("%s", why->msg);
}

static void watch(struct follow *f)
{
    const struct watcher_sink jobs = {.ctx = f,
                                      .replace_begin = ignore_list,
                                      .replace_end = ignore_list,
                                      .upsert = on_job,
                                      .removed = on_job_removed,
                                      .unreadable = ignore_unreadable,
                                      .problem = on_job_problem};
    const struct watcher_sink pods = {.ctx = f,
                                      .replace_begin = on_pods_begin,
                                      .replace_end = on_pods_end,
                                      .upsert = on_pod,
                                      .removed = on_pod_removed,
                                      .unreadable = ignore_unreadable,
                                      .problem = on_pod_problem};
    struct kube_watcher_options o = {.resource = SESSION_JOBS, .ns = f->session->ns, .seed = 1};
    char selector[sizeof(LABEL_JOB) + 2 * DECODE_NAME_BYTES];

    snprintf(selector, sizeof(selector), "metadata.name=%s", f->job->name);
    o.field_selector = selector;
    f->job_watch = reflector_new(f->session->loop, &f->session->api, &o, &jobs);
    snprintf(selector, sizeof(selector), LABEL_JOB "=%s", f->job->name);
    o = (struct kube_watcher_options){
        .resource = KUBE_PODS, .ns = f->session->ns, .seed = 2, .label_selector = selector};
    f->pod_watch = reflector_new(f->session->loop, &f->session->api, &o, &pods);
    reflector_start(f->job_watch);
    reflector_start(f->pod_watch);
}

static int status_of(const struct follow *f, struct err *err)
{
    if (f->unread)
        return VERB_SIGPIPE;
    if (f->err.kind) {
        *err = f->err;
        return -1;
    }
    if (f->deleted && !f->finished)
        return err_set(err, ERR_NOT_FOUND, "the job %s was deleted", f->job->name);
    return f->has_failed || (f->options->follow && f->job->status.phase == JOB_FAILED);
}

int follow_job(struct session *s, struct trainjob *job, const struct follow_options *o, struct err *err)
{
    struct follow *f = memory_must(calloc(1, sizeof(*f)));

    *f = (struct follow){.session = s, .options = o, .job = job, .merge = merge_new()};
    f->attempt = job->status.attempt;
    f->finished = jobstatus_finished(&job->status);
    f->sink = (struct feed_sink){f, on_moved, on_trouble, on_fatal};
    f->printing = (struct kube_loop_task){.run = print, .ctx = f};
    f->print_again = (struct kube_loop_timer){.fire = print, .ctx = f};
    f->lingering = (struct kube_loop_timer){.fire = linger_no_more, .ctx = f};
    watch(f);
    int status = kube_loop_run(s->loop, err);
    if (status == 0)
        status = status_of(f, err);
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_close(&f->feeds[i]);
    reflector_free(f->job_watch);
    reflector_free(f->pod_watch);
    kube_loop_timer_cancel(s->loop, &f->print_again);
    kube_loop_timer_cancel(s->loop, &f->lingering);
    kube_loop_task_cancel(s->loop, &f->printing);
    merge_free(f->merge);
    trainjob_free(f->job);
    free(f);
    return status;
}
