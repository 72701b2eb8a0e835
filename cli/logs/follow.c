/* follow.c - one feed for each pod that the watch shows, and a printer that is run after any of them moved. */
#include "cli/logs/follow.h"

#include "cli/logs/jobwatch.h"
#include "cli/logs/notes.h"
#include "cli/say.h"
#include "common/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    OUT_BYTES = MERGE_LINE_BYTES + 1024,
    LINGER_MS = 40000, /* after the job's end its other pods have 30 s to end */
};

struct follow {
    struct session *session;
    const struct follow_options *options;
    struct trainjob *job;
    struct jobwatch *watch;
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
    bool has_pods; /* of the present attempt */
    struct notes notes;
    struct err err;
};

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
    say("kubectl ptj logs", "pod %s: %s%s", feed->pod, err->msg, feed->failed ? "" : "; trying again");
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

/* A free number. That of a pod that exists stays its own, lest its log be read again. */
static int free_stream(struct follow *f)
{
    for (int i = 0; i < MERGE_STREAMS; i++)
        if ((!f->feeds[i].used || (f->feeds[i].done && f->feeds[i].gone)) &&
            merge_open(f->merge, i, kube_loop_now_ms(f->session->loop)))
            return i;
    return -1;
}

static void begin_feed(struct follow *f, const struct pod *pod, bool ended)
{
    const size_t job_len = strlen(f->job->name);
    const bool has_prefix = !strncmp(pod->name, f->job->name, job_len) && pod->name[job_len] == '-';
    const int i = free_stream(f);

    if (i < 0) {
        say("kubectl ptj logs", "pod %s: not shown: %d logs are read already", pod->name, MERGE_STREAMS);
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

static bool waits(const struct follow *f)
{
    return f->options->follow && !f->finished;
}

/* Beside logs that are shown it is not said that another pod is late. */
static void wait_for_pod(struct follow *f, const struct pod *pod)
{
    bool shows = false;

    f->has_pods = true;
    for (int i = 0; i < MERGE_STREAMS; i++)
        shows |= f->feeds[i].used && !f->feeds[i].done;
    if (!shows && waits(f))
        notes_wait_for_pod(&f->notes, pod);
}

static void wait_for_job(struct follow *f)
{
    if (f->synced && !f->has_pods && waits(f))
        notes_wait_for_job(&f->notes, &f->job->status);
}

static bool is_ours(const struct follow *f, const struct pod *pod)
{
    return !strcmp(pod->owner_uid, f->job->uid) &&
           ranks_have_pod(&f->options->ranks, &f->job->spec, pod->type, pod->index);
}

static void on_pod(void *ctx, const struct pod *pod)
{
    struct follow *f = ctx;
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
    print_soon(f);
}

static void pod_is_gone(struct follow *f, struct feed *feed)
{
    feed->gone = feed->ended = true;
    feed_update(feed);
    print_soon(f);
}

static void on_pod_gone(void *ctx, const char *uid)
{
    struct follow *f = ctx;
    struct feed *feed = feed_of(f, uid);

    if (feed)
        pod_is_gone(f, feed);
}

static void on_pods_begin(void *ctx)
{
    struct follow *f = ctx;

    for (int i = 0; i < MERGE_STREAMS; i++)
        f->feeds[i].listed = false;
}

static void on_pods_end(void *ctx)
{
    struct follow *f = ctx;

    for (int i = 0; i < MERGE_STREAMS; i++)
        if (f->feeds[i].used && !f->feeds[i].gone && !f->feeds[i].listed)
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
        feed_read_out(&f->feeds[i]);
    print_soon(f);
}

/* The two watches are not in step: of pods that ran, nothing may have been heard when the job's end is. */
static void see_all_pods(struct follow *f)
{
    f->synced = false;
    jobwatch_list_pods(f->watch);
}

/* The logs of a job that ended are read to their ends, those of pods that go on for a while. */
static void see_end(struct follow *f)
{
    if (f->finished || !jobstatus_finished(&f->job->status))
        return;
    f->finished = true;
    see_all_pods(f);
    kube_loop_timer_set(f->session->loop, &f->lingering, kube_loop_now_ms(f->session->loop) + LINGER_MS);
}

static void see_attempt(struct follow *f)
{
    const struct jobstatus *st = &f->job->status;
    const struct condition *why = &st->conditions[COND_REPLICA_FAILURE];

    if (st->attempt <= f->attempt)
        return;
    f->attempt = st->attempt;
    notes_forget(&f->notes);
    f->has_pods = false;
    if (f->options->follow && !f->finished)
        say("kubectl ptj logs", "attempt %d of %s begins%s%s", st->attempt, f->job->name,
            why->state == COND_TRUE && why->message && why->message[0] ? ": " : "",
            why->state == COND_TRUE && why->message ? why->message : "");
}

static void see_deleted(struct follow *f)
{
    if (!f->deleted)
        see_all_pods(f);
    f->deleted = true;
}

static void on_job(void *ctx, struct trainjob *job)
{
    struct follow *f = ctx;

    if (f->deleted || strcmp(job->uid, f->job->uid)) { /* another of the same name */
        trainjob_free(job);
        see_deleted(f);
    } else {
        trainjob_free(f->job);
        f->job = job;
        see_attempt(f);
        see_end(f);
        wait_for_job(f);
    }
    print_soon(f);
}

static void on_job_gone(void *ctx)
{
    struct follow *f = ctx;

    see_deleted(f);
    print_soon(f);
}

static void on_lost(void *ctx, const struct err *err)
{
    struct follow *f = ctx;

    if (!f->is_lost)
        say("kubectl ptj logs", "%s; trying again", err->msg);
    f->is_lost = true;
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
    f->watch = jobwatch_new(s, job->name,
                            &(struct jobwatch_sink){.ctx = f,
                                                    .job = on_job,
                                                    .job_gone = on_job_gone,
                                                    .pods_begin = on_pods_begin,
                                                    .pods_end = on_pods_end,
                                                    .pod = on_pod,
                                                    .pod_gone = on_pod_gone,
                                                    .lost = on_lost,
                                                    .fatal = on_fatal});
    int status = kube_loop_run(s->loop, err);
    if (status == 0)
        status = status_of(f, err);
    for (int i = 0; i < MERGE_STREAMS; i++)
        feed_close(&f->feeds[i]);
    jobwatch_free(f->watch);
    kube_loop_timer_cancel(s->loop, &f->print_again);
    kube_loop_timer_cancel(s->loop, &f->lingering);
    kube_loop_task_cancel(s->loop, &f->printing);
    merge_free(f->merge);
    trainjob_free(f->job);
    free(f);
    return status;
}
