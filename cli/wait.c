/* wait.c - kubectl ptj wait: for scripts, until a job runs or has ended. */
#include "cli/jobfeed.h"
#include "cli/span.h"
#include "cli/usage.h"
#include "cli/watch/board.h"

#include <stdio.h>
#include <string.h>

enum { TIMED_OUT = 124 };

struct wait {
    struct session *session;
    const char *name;
    bool for_running;
    int64_t timeout_s; /* -1: none */
    struct board board;
    struct jobfeed *feed;
    struct kube_loop_timer late;
    bool listed, lost_told, over;
    int status; /* -1: see err */
    struct err err;
};

static void end(struct wait *w, int status)
{
    if (!w->over)
        w->status = status;
    w->over = true;
    kube_loop_stop(w->session->loop);
}

static const struct board_job *job_of(const struct wait *w)
{
    const struct board_job *j = board_find(&w->board, w->session->ns, w->name);

    return j && j->listed ? j : NULL;
}

static void judge(struct wait *w, const struct board_job *j)
{
    const char *reason = strstr(j->failure, j->reason) ? "" : j->reason; /* OOMKilled stands in both */

    if (j->phase == JOB_FAILED) {
        fprintf(stderr, "kubectl ptj wait: %s failed%s%s%s%s%s\n", j->name, reason[0] ? " (" : "", reason,
                reason[0] ? ")" : "", j->failure[0] ? ": " : "", j->failure);
        end(w, j->exit_code > 0 ? j->exit_code : 1);
    } else if (j->phase == JOB_SUCCEEDED || (j->phase == JOB_RUNNING && w->for_running)) {
        printf("%s %s\n", j->name, j->phase == JOB_SUCCEEDED ? "succeeded" : "is running");
        end(w, 0);
    }
}

static void on_job(void *ctx, const cJSON *object)
{
    struct wait *w = ctx;
    const struct board_job *j = board_put(&w->board, object);

    if (j && !w->over)
        judge(w, j);
}

static void on_gone(void *ctx, const struct board_job *j)
{
    struct wait *w = ctx;

    (void)err_set(&w->err, ERR_NOT_FOUND, "%.63s was deleted", j->name);
    end(w, -1);
}

static void on_removed(void *ctx, const char *ns, const char *name)
{
    struct wait *w = ctx;
    const struct board_job *j = board_find(&w->board, ns, name);

    if (j)
        on_gone(w, j);
    board_remove(&w->board, ns, name);
}

/* The time of --timeout begins, if it has not begun. */
static void begin_time(struct wait *w)
{
    if (w->timeout_s >= 0 && !kube_loop_timer_is_set(&w->late))
        kube_loop_timer_set(w->session->loop, &w->late,
                            kube_loop_now_ms(w->session->loop) + w->timeout_s * 1000);
}

static void on_list_begin(void *ctx)
{
    struct wait *w = ctx;

    begin_time(w);
    board_list_begin(&w->board);
}

static void on_list_end(void *ctx)
{
    struct wait *w = ctx;

    board_list_end(&w->board, on_gone, w);
    w->listed = true;
    if (job_of(w) || w->timeout_s >= 0)
        return;
    (void)err_set(&w->err, ERR_NOT_FOUND,
                  "there is no training job \"%.63s\" in namespace %.63s; with --timeout it is waited for",
                  w->name, w->session->ns);
    end(w, -1);
}

static void on_state(void *ctx)
{
    struct wait *w = ctx;
    const struct jobfeed_trouble *t = jobfeed_trouble(w->feed);

    if (t->since_ms && !w->lost_told)
        fprintf(stderr, "kubectl ptj wait: %s; trying again\n",
                t->why[0] ? t->why : "the API server does not answer");
    else if (!t->since_ms && w->lost_told)
        fputs("kubectl ptj wait: the API server answers again\n", stderr);
    w->lost_told = t->since_ms;
}

static void on_failed(void *ctx, const struct err *err)
{
    struct wait *w = ctx;

    w->err = *err;
    end(w, -1);
}

static void on_late(void *ctx)
{
    struct wait *w = ctx;
    const struct board_job *j = job_of(w);

    if (!w->listed)
        fputs("kubectl ptj wait: timed out: the API server has not answered\n", stderr);
    else if (!j)
        fprintf(stderr, "kubectl ptj wait: timed out: there is no training job \"%s\" in namespace %s\n",
                w->name, w->session->ns);
    else
        fprintf(stderr, "kubectl ptj wait: timed out: %s is %s%s%s%s\n", j->name,
                j->phase == JOB_NONE ? "without a status" : job_phase_name(j->phase),
                j->reason[0] ? " (" : "", j->reason, j->reason[0] ? ")" : "");
    end(w, TIMED_OUT);
}

static int read_options(struct wait *w, const struct args *a, struct err *err)
{
    const char *until = args_text(a, "for", "finished"), *timeout = args_text(a, "timeout", NULL);

    w->for_running = !strcmp(until, "running");
    if (!w->for_running && strcmp(until, "finished"))
        return usage_wrong(err, "--for: expected running or finished, got \"%.40s\"", until);
    return timeout ? span_parse("timeout", timeout, &w->timeout_s, err) : 0;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    struct wait w = {.session = s, .name = a->operands[0], .timeout_s = -1};

    if (read_options(&w, a, err) < 0)
        return -1;
    board_init(&w.board);
    w.late = (struct kube_loop_timer){.fire = on_late, .ctx = &w};
    if (!session_may_ask(s->http)) /* else by the first answer */
        begin_time(&w);
    w.feed = jobfeed_new(&(struct jobfeed_options){.session = s,
                                                   .ns = s->ns,
                                                   .name = w.name,
                                                   .list_begin = on_list_begin,
                                                   .list_end = on_list_end,
                                                   .job = on_job,
                                                   .removed = on_removed,
                                                   .state = on_state,
                                                   .failed = on_failed,
                                                   .ctx = &w});
    if (kube_loop_run(s->loop, &w.err) < 0)
        w.status = -1;
    jobfeed_free(w.feed);
    kube_loop_timer_cancel(s->loop, &w.late);
    board_release(&w.board);
    if (w.status < 0)
        *err = w.err;
    return w.status;
}

static const struct option_row OPTIONS[] = {
    {"for", 0, "WHAT", .help = "running, or finished (default): succeeded or failed",
     .words = OPTION_WORDS("running", "finished")},
    {"timeout", 0, "TIME", .help = "give up after 90s, 5m, 1h30m (default: never)"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj wait bert --timeout 2h", "Until the job has ended, for two hours at most."},
    {"kubectl ptj wait bert --for running --timeout 10m", "Until its pods run."},
    {"kubectl ptj wait bert && kubectl ptj logs bert --no-follow", "Print its logs once it has succeeded."},
    {0},
};

const struct verb VERB_WAIT = {
    .name = "wait",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_JOBS,
    .summary = "wait until a job runs or has ended, for scripts",
    .about =
        "Ends when the job has succeeded or failed; with --for=running also when its pods run. A job "
        "that does not exist is an error at once, and with --timeout it is waited for. A lost API server "
        "is asked again until it answers. On a terminal the time of --timeout begins with its first "
        "answer: kubectl may ask for a password before.\n"
        "Exit status: 0; when the job failed the exit code of the rank that failed, or 1 where there is "
        "none; 124 "
        "when the time is over; 1 when the job was deleted or cannot be read.",
    .options = OPTIONS,
    .examples = EXAMPLES,
    .run = run,
};
