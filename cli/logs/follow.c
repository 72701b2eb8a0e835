/* follow.c - begin and end feeds by what the watch shows of the job and its pods, and print the merged lines. */
#include "cli/logs/follow.h"
#include "cli/jobfeed.h"
#include "cli/logs/feeds.h"
#include "cli/say.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/text.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- print on stderr what `logs` waits for */

struct notes {
    bool once;         /* logs does not wait: the notes explain why there is no log */
    char printed[512]; /* the reasons */
};

static void print_waiting(struct notes *n, const char *what, const char *reason, const char *message)
{
    char mark[DECODE_REASON_BYTES + 3];

    snprintf(mark, sizeof(mark), "/%s/", reason);
    if (strstr(n->printed, mark))
        return;
    text_add(n->printed, sizeof(n->printed), "%s", mark);
    say("kubectl ptj logs", "%s %s%s: %s%s%s", n->once ? "no log of" : "waiting for", what,
        n->once ? " yet" : "", reason, message && message[0] ? ": " : "", message ? message : "");
}

/* Why this pod does not run yet; why the job has no pods. */
static void notes_wait_for_pod(struct notes *n, const struct pod *pod)
{
    static const char *const STARTS[] = {"", "ContainerCreating", "PodInitializing"};
    const struct pod_container *c = pod->init.reason[0] ? &pod->init : &pod->training;
    const char *reason = c->reason;
    char what[DECODE_NAME_BYTES + 8];

    for (size_t i = 0; i < ARRAY_LEN(STARTS); i++)
        reason = strcmp(c->reason, STARTS[i]) == 0 ? "it is starting" : reason;
    snprintf(what, sizeof(what), "pod %s", pod->name);
    if (pod->unplaced == UNPLACED_UNSCHEDULABLE)
        print_waiting(n, what, "Unschedulable", pod->unplaced_by);
    else
        print_waiting(n, what, reason, c->message);
}

static void notes_wait_for_job(struct notes *n, const struct jobstatus *st)
{
    const struct condition *running = &st->conditions[COND_RUNNING];
    const struct condition *invalid = &st->conditions[COND_INVALID_SPEC];
    const char *phase = st->phase == JOB_NONE ? "the job has no status yet" : job_phase_name(st->phase);

    print_waiting(n, n->once ? "the pods" : "pods", st->reason ? st->reason : phase,
                  invalid->state == COND_TRUE ? invalid->message : running->message);
}

/* ---- the streams */

enum {
    OUT_BYTES = MERGE_LINE_BYTES + 1024,
    LINGER_MS = 40000, /* after the job's end its other pods have 30 s to end */
};

struct follow {
    struct session *session;
    const struct follow_options *options;
    struct trainjob *job;
    struct jobfeed *watch;
    struct feeds feeds;
    struct kube_loop_task printing;
    struct kube_loop_timer print_again, lingering;
    bool synced, deleted, finished;
    bool has_failed; /* some log was not read */
    bool unread;     /* stdout has no reader any more */
    bool is_lost;    /* the connection, and that is printed */
    bool listed;     /* the job, in the present list */
    int32_t attempt;
    bool has_pods;       /* of the present attempt */
    bool has_container;  /* some pod has options->container */
    struct err lacks_it; /* of the first pod that does not; no kind: there is none */
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

    f->has_failed |= feed->failed;
    print_soon(f);
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

    while (merge_next(f->feeds.merge, now_ms, &line)) {
        if (!view_wants(f->options->view.grep, line.text))
            continue;
        buf_clear(&out);
        view_line(&out, &f->options->view, f->feeds.of[line.stream].label, &line);
        /* Of a line-buffered stream fwrite may count what it failed to write. */
        if (fwrite(out.data, 1, out.len, stdout) != out.len || ferror(stdout))
            return false;
    }
    return fflush(stdout) == 0;
}

static void print(void *ctx)
{
    struct follow *f = ctx;
    const int64_t now_ms = kube_loop_now_ms(f->session->loop);
    const struct clock clock = kube_loop_clock(f->session->loop);
    const int64_t began_ms = clock.mono_ms(clock.ctx);
    struct err err;

    if (!print_lines(f, now_ms)) {
        f->unread = errno == EPIPE;
        err_errno(&err, ERR_FATAL, errno, "stdout");
        end_with(f, &err);
        return;
    }
    feeds_release(&f->feeds);
    f->feeds.blocked_ms += clock.mono_ms(clock.ctx) - began_ms;
    const int64_t due_ms = merge_due_ms(f->feeds.merge, now_ms);
    if (due_ms != INT64_MAX)
        kube_loop_timer_set(f->session->loop, &f->print_again, due_ms);
    if (f->synced && (f->finished || f->deleted || !f->options->follow) && feeds_done(&f->feeds) &&
        merge_is_empty(f->feeds.merge))
        kube_loop_stop(f->session->loop);
}

static bool waits(const struct follow *f)
{
    return f->options->follow && !f->finished;
}

/* While it follows logs, `logs` does not print that another pod is late. */
static void wait_for_pod(struct follow *f, const struct pod *pod)
{
    f->has_pods = true;
    if (!f->finished && (feeds_done(&f->feeds) || !f->options->follow))
        notes_wait_for_pod(&f->notes, pod);
}

/* A resumed job has the phase Paused until the operator acts: no reason to print. */
static void wait_for_job(struct follow *f)
{
    const bool resumed = f->job->status.phase == JOB_PAUSED && !f->job->spec.paused;

    if (f->synced && !f->has_pods && !f->finished && !f->err.kind && !(resumed && waits(f)))
        notes_wait_for_job(&f->notes, &f->job->status);
}

static bool is_ours(const struct follow *f, const struct pod *pod)
{
    return !strcmp(pod->owner_uid, f->job->uid) &&
           ranks_have_pod(&f->options->ranks, f->job, pod->type, pod->index);
}

static void see_pod(struct follow *f, const struct pod *pod)
{
    const bool begun =
        pod->training.state == CONTAINER_TERMINATED || pod->training.state == CONTAINER_RUNNING;

    print_soon(f);
    if (feeds_update(&f->feeds, pod) || !is_ours(f, pod))
        return;
    if (begun) {
        f->has_pods = true;
        feeds_begin(&f->feeds, pod, f->job->name, !waits(f));
    } else if (!pod_ended(pod)) {
        wait_for_pod(f, pod);
    }
}

/* Take another container of the pod for the one whose log is read. */
static int choose_container(const cJSON *object, const char *name, struct pod *pod, struct err *err)
{
    static const char *const LISTS[][2] = {{"containers", "containerStatuses"},
                                           {"initContainers", "initContainerStatuses"},
                                           {"ephemeralContainers", "ephemeralContainerStatuses"}};
    char all[160] = "";

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        const cJSON *list = json_find(object, (const char *[]){"spec", LISTS[i][0], NULL}), *c;
        const cJSON *statuses = json_find(object, (const char *[]){"status", LISTS[i][1], NULL});
        const cJSON *state = json_child(json_item_with(statuses, "name", name), "state");
        if (json_item_with(list, "name", name)) {
            pod->training.name = name;
            pod->training.state = cJSON_IsObject(json_child(state, "terminated")) ? CONTAINER_TERMINATED
                                  : cJSON_IsObject(json_child(state, "running"))  ? CONTAINER_RUNNING
                                                                                  : CONTAINER_WAITING;
            return 0;
        }
        cJSON_ArrayForEach(c, list)
            text_add(all, sizeof(all), "%s%s", all[0] ? ", " : "", json_str(c, "name"));
    }
    return err_set(err, ERR_INVALID, "--container: pod %.63s has no container \"%.63s\", only %s", pod->name,
                   name, all);
}

/* The container may be one of a template whose pods are not there yet. */
static bool template_has_container(const struct follow *f)
{
    static const char *const LISTS[] = {"containers", "initContainers"};
    const struct trainjob_spec *spec = &f->job->spec;

    for (size_t i = 0; i < 2 * (size_t)spec->n_replica_specs; i++)
        if (json_item_with(
                json_find(spec->replica_specs[i / 2].template, (const char *[]){"spec", LISTS[i % 2], NULL}),
                "name", f->options->container))
            return true;
    return false;
}

/* Pods without the container are passed over, unless all lack it. */
static void expect_container(struct follow *f)
{
    if (f->synced && f->lacks_it.kind && !f->has_container && !(waits(f) && template_has_container(f)))
        end_with(f, &f->lacks_it);
}

/* Returns false of a pod without the container whose log is to be read. */
static bool take_container(struct follow *f, const cJSON *object, struct pod *pod)
{
    struct err err;

    if (!f->options->container || !is_ours(f, pod))
        return true;
    if (choose_container(object, f->options->container, pod, &err) == 0)
        return f->has_container = true;
    if (!f->lacks_it.kind)
        f->lacks_it = err;
    expect_container(f);
    return false;
}

static void on_pod(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;
    const struct follow_options *o = f->options;
    struct err err;
    struct pod *pod = pod_decode(object, NULL, &err);

    if (pod && o->ranks.n && !strcmp(pod->owner_uid, f->job->uid) &&
        ranks_check_order(&f->job->spec, object, &err) < 0)
        end_with(f, &err);
    else if (pod && take_container(f, object, pod))
        see_pod(f, pod);
    free(pod);
}

static void on_pod_gone(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;
    const char *uid = json_meta(object, "uid");

    if (uid)
        feeds_gone(&f->feeds, uid);
    print_soon(f);
}

static void on_pods_begin(void *ctx)
{
    struct follow *f = ctx;

    feeds_list_begin(&f->feeds);
}

static void on_pods_end(void *ctx)
{
    struct follow *f = ctx;

    feeds_list_end(&f->feeds);
    f->synced = true;
    expect_container(f);
    wait_for_job(f);
    print_soon(f);
}

static void linger_no_more(void *ctx)
{
    struct follow *f = ctx;

    feeds_read_out(&f->feeds);
    print_soon(f);
}

/* The watch of the job may be ahead of that of the pods: pods that ran may be unknown when the job's end is seen. */
static void see_all_pods(struct follow *f)
{
    f->synced = false;
    jobfeed_list_pods(f->watch);
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
    f->notes.printed[0] = '\0';
    f->has_pods = false;
    if (waits(f))
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

static void see_job(struct follow *f, struct trainjob *job)
{
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

static void on_job(void *ctx, const cJSON *object)
{
    struct follow *f = ctx;
    struct err unreadable;
    /* Of a job that is too large to be read only its names are there. */
    struct trainjob *job =
        json_child(object, "spec") ? trainjob_decode(cJSON_Duplicate(object, true), &unreadable) : NULL;

    f->listed = true;
    if (job)
        see_job(f, job);
}

static void on_job_gone(void *ctx, const cJSON *object)
{
    (void)object;
    see_deleted(ctx);
    print_soon(ctx);
}

static void on_list_begin(void *ctx)
{
    struct follow *f = ctx;

    f->listed = false;
}

static void on_list_end(void *ctx)
{
    struct follow *f = ctx;

    if (!f->listed)
        see_deleted(f);
    print_soon(f);
}

static void on_state(void *ctx, const struct jobfeed_trouble *t)
{
    struct follow *f = ctx;

    if (t->since_ms && !f->is_lost)
        say("kubectl ptj logs", "%s; trying again", t->why[0] ? t->why : "the API server does not answer");
    f->is_lost = t->since_ms;
}

static const struct jobfeed_sink PODS = {
    .list_begin = on_pods_begin, .list_end = on_pods_end, .object = on_pod, .removed = on_pod_gone};

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
    if (f->finished && !f->has_pods)
        say("kubectl ptj logs", "no pod of %s is left, so there is no log%s", f->job->name,
            f->job->status.phase == JOB_FAILED ? ": --previous prints what the status saved" : "");
    return f->has_failed || (f->options->follow && f->job->status.phase == JOB_FAILED);
}

int follow_job(struct session *s, struct trainjob *job, const struct follow_options *o, struct err *err)
{
    struct follow *f = memory_must(calloc(1, sizeof(*f)));

    *f = (struct follow){.session = s,
                         .options = o,
                         .job = job,
                         .feeds = {.session = s,
                                   .merge = merge_new(),
                                   .tail = o->tail,
                                   .since_s = o->since_s,
                                   .ctx = f,
                                   .moved = on_moved,
                                   .fatal = on_fatal}};
    f->attempt = job->status.attempt;
    f->finished = jobstatus_finished(&job->status);
    f->notes.once = !o->follow;
    f->printing = (struct kube_loop_task){.run = print, .ctx = f};
    f->print_again = (struct kube_loop_timer){.fire = print, .ctx = f};
    f->lingering = (struct kube_loop_timer){.fire = linger_no_more, .ctx = f};
    f->watch = jobfeed_new(&(struct jobfeed_options){.session = s,
                                                     .ns = s->ns,
                                                     .name = job->name,
                                                     .jobs = {.list_begin = on_list_begin,
                                                              .list_end = on_list_end,
                                                              .object = on_job,
                                                              .removed = on_job_gone},
                                                     .pods = &PODS,
                                                     .state = on_state,
                                                     .failed = on_fatal,
                                                     .ctx = f});
    int status = s->stopped ? session_stopped(err) : kube_loop_run(s->loop, err);
    if (status == 0)
        status = status_of(f, err);
    feeds_close(&f->feeds);
    jobfeed_free(f->watch);
    kube_loop_timer_cancel(s->loop, &f->print_again);
    kube_loop_timer_cancel(s->loop, &f->lingering);
    kube_loop_task_cancel(s->loop, &f->printing);
    merge_free(f->feeds.merge);
    trainjob_free(f->job);
    free(f);
    return status;
}
