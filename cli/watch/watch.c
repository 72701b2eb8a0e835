/* watch.c - kubectl ptj watch: follow jobs in a table on the terminal, or as lines in a pipe, until one has ended or runs. */
#include "cli/jobfeed.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/span.h"
#include "cli/terminal.h"
#include "cli/texts.h"
#include "cli/usage.h"
#include "cli/watch/changes.h"
#include "cli/watch/pages.h"
#include "cli/watch/record.h"

#include "common/fsutil.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINES_BYTES_MAX = 16 << 20, FLUSH_BYTES = 64 << 10, TIMED_OUT = 124 };

static const char WHO[] = "kubectl ptj watch";

enum until { UNTIL_ENDED, UNTIL_RUNNING, UNTIL_FINISHED }; /* UNTIL_ENDED: without --until */

struct watch {
    struct session *session;
    const char *name; /* NULL: all jobs */
    enum until until;
    int64_t timeout_s; /* -1: none */
    bool once, json;
    struct board board;
    struct jobfeed *feed;
    struct display display;
    struct pages pages;
    bool on_terminal, in_list, is_lost;
    bool shows; /* it has taken the terminal */
    bool seen;  /* the job of that name was there */
    bool over;
    bool ends_later;  /* with `status`, when the page is closed */
    struct buf lines; /* not yet written */
    struct kube_loop_fd reader;
    struct kube_loop_timer late;
    bool has_reader;
    int status, signal;
    char last_words[2 * BOARD_TEXT_BYTES + 200]; /* for stderr at the end */
    struct err err;
};

static void end(struct watch *w, int status)
{
    if (!w->over)
        w->status = status;
    w->over = w->session->stopped = true;
    kube_loop_stop(w->session->loop);
}

/* The job has ended: a page that is open stays until its reader leaves it. */
static void end_with_job(struct watch *w, int status)
{
    if (!w->pages.open) {
        end(w, status);
    } else if (!w->ends_later) {
        w->ends_later = true;
        w->status = status;
    }
}

static void on_key(void *ctx, enum key key)
{
    struct watch *w = ctx;

    if (!pages_key(&w->pages, key) && key == KEY_QUIT)
        end(w, 0);
}

static void write_lines(struct watch *w)
{
    if (w->lines.len && fs_write_all(STDOUT_FILENO, w->lines.data, w->lines.len) < 0) {
        if (errno != EPIPE)
            (void)err_errno(&w->err, ERR_FATAL, errno, "stdout");
        end(w, errno == EPIPE ? VERB_SIGPIPE : -1);
    }
    buf_clear(&w->lines);
}

static void changed(struct watch *w)
{
    if (w->shows)
        display_changed(&w->display);
    else if (!w->on_terminal && (!w->in_list || w->lines.len >= FLUSH_BYTES))
        write_lines(w);
}

/* Whether this is what the job is watched for. */
static void judge(struct watch *w, const struct board_job *j)
{
    const char *reason = strstr(j->failure, j->reason) ? "" : j->reason; /* OOMKilled stands in both */

    w->seen = true;
    if (w->once || (j->phase != JOB_SUCCEEDED && j->phase != JOB_FAILED &&
                    (j->phase != JOB_RUNNING || w->until != UNTIL_RUNNING)))
        return;
    w->display.table.waiting = false;
    if (w->until && j->phase == JOB_FAILED)
        snprintf(w->last_words, sizeof(w->last_words), "%s failed%s%s%s%s%s", j->name, reason[0] ? " (" : "",
                 reason, reason[0] ? ")" : "", j->failure[0] ? ": " : "", j->failure);
    end_with_job(w, j->phase != JOB_FAILED ? 0 : w->until && j->exit_code > 0 ? j->exit_code : 1);
}

static void add_record(struct watch *w, cJSON *record)
{
    if (record && output_json(record, &w->lines, &w->err) < 0)
        end(w, -1);
    cJSON_Delete(record);
}

static void on_job(void *ctx, const cJSON *object)
{
    struct watch *w = ctx;
    const int64_t now_ms = kube_loop_wall_ms(w->session->loop);
    struct board_job *j = board_put(&w->board, object);

    if (!j)
        return;
    if (w->json)
        add_record(w, record_of(j, object, now_ms));
    else if (!w->on_terminal)
        changes_of(j, w->display.table.with_ns, now_ms, &w->lines);
    changed(w);
    if (w->name)
        judge(w, j);
}

static void gone(void *ctx, const struct board_job *j)
{
    struct watch *w = ctx;
    const int64_t now_ms = kube_loop_wall_ms(w->session->loop);

    if (w->json)
        add_record(w, record_deleted(j, now_ms));
    else if (!w->on_terminal)
        changes_deleted(j, w->display.table.with_ns, now_ms, &w->lines);
    if (!w->name)
        return;
    (void)err_set(&w->err, ERR_NOT_FOUND, "%.63s was deleted", j->name);
    end_with_job(w, -1);
}

static void on_removed(void *ctx, const cJSON *object)
{
    struct watch *w = ctx;
    const char *ns = json_meta(object, "namespace"), *name = json_meta(object, "name");
    const struct board_job *j = board_find(&w->board, ns, name);

    if (j)
        gone(w, j);
    board_remove(&w->board, ns, name);
    changed(w);
}

static void on_event(void *ctx, const cJSON *event)
{
    struct watch *w = ctx;

    board_event(&w->board, event);
    changed(w);
}

static void on_signal(void *ctx, int signal)
{
    struct watch *w = ctx;

    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
        w->signal = signal;
        end(w, 128 + signal);
    } else {
        display_signal(&w->display, signal);
    }
}

/* Not before the first answer: a credential plug-in of kubectl's may ask for something on the terminal until then. */
static void show(struct watch *w)
{
    static const int SIGNALS[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP};

    w->shows = true;
    display_begin(&w->display);
    display_changed(&w->display);
    if (kube_loop_signals(w->session->loop, SIGNALS, ARRAY_LEN(SIGNALS), on_signal, w, &w->err) < 0)
        end(w, -1);
}

/* The time of --timeout begins, if it has not begun. With 0 the first list is waited for instead. */
static void begin_time(struct watch *w)
{
    if (w->timeout_s > 0 && !kube_loop_timer_is_set(&w->late))
        kube_loop_timer_set(w->session->loop, &w->late,
                            kube_loop_now_ms(w->session->loop) + w->timeout_s * 1000);
}

static void on_late(void *ctx)
{
    struct watch *w = ctx;
    const struct board_job *j = board_find(&w->board, w->session->ns, w->name);

    if (w->display.table.waiting)
        snprintf(w->last_words, sizeof(w->last_words), "timed out: the API server has not answered");
    else if (!j || !j->listed)
        snprintf(w->last_words, sizeof(w->last_words),
                 "timed out: there is no training job \"%.63s\" in namespace %.63s", w->name, w->session->ns);
    else
        snprintf(w->last_words, sizeof(w->last_words), "timed out: %s is %s%s%s%s", j->name,
                 j->phase == JOB_NONE ? "without a status" : job_phase_name(j->phase),
                 j->reason[0] ? " (" : "", j->reason, j->reason[0] ? ")" : "");
    end(w, TIMED_OUT);
}

static void on_list_begin(void *ctx)
{
    struct watch *w = ctx;

    begin_time(w);
    if (w->on_terminal && !w->shows && !w->once)
        show(w);
    w->in_list = true;
    board_list_begin(&w->board);
}

static void on_list_end(void *ctx)
{
    struct watch *w = ctx;

    board_list_end(&w->board, gone, w);
    w->in_list = w->display.table.waiting = false;
    if (w->name && !w->seen && w->timeout_s < 0) {
        (void)err_set(&w->err, ERR_NOT_FOUND, "there is no training job \"%.63s\" in namespace %.63s%s",
                      w->name, w->session->ns, w->until ? "; with --timeout, watch waits for it" : "");
        end(w, -1);
    }
    changed(w);
    if (w->once)
        end(w, 0);
    else if (w->timeout_s == 0 && !w->over)
        on_late(w);
}

static void describe_state(const struct jobfeed_trouble *t, char *to, size_t size)
{
    const time_t since = (time_t)(t->since_ms / 1000);
    struct tm tm;
    char at[16] = "";

    to[0] = '\0';
    if (t->since_ms && localtime_r(&since, &tm))
        strftime(at, sizeof(at), "%H:%M:%S", &tm);
    if (t->since_ms && t->why[0])
        snprintf(to, size, "No server since %s, trying again: %s", at, t->why);
    else if (t->since_ms)
        snprintf(to, size, "No answer since %s, waiting for the API server", at);
    else if (t->events[0])
        snprintf(to, size, "No events: %s", t->events);
}

static void on_state(void *ctx, const struct jobfeed_trouble *t)
{
    struct watch *w = ctx;
    char note[DISPLAY_NOTE_BYTES];
    const bool lost = t->since_ms;

    describe_state(t, note, sizeof(note));
    if (w->shows) {
        snprintf(w->display.note, sizeof(w->display.note), "%s", note);
        display_changed(&w->display);
    } else if (lost && !w->is_lost) {
        say(WHO, "%s", note);
    } else if (!lost && w->is_lost) {
        say(WHO, "the API server answers again");
    }
    w->is_lost = lost;
}

static void on_failed(void *ctx, const struct err *err)
{
    struct watch *w = ctx;

    w->err = *err;
    end(w, -1);
}

/* The reader is gone: no other event is polled for. So watch ends at once, not when it has a line to write. */
static void on_reader(void *ctx, short revents)
{
    (void)revents;
    end(ctx, VERB_SIGPIPE);
}

static void begin_output(struct watch *w)
{
    struct stat out;
    struct err err;

    if (w->on_terminal)
        return;
    w->reader = (struct kube_loop_fd){.ready = on_reader, .ctx = w, .fd = STDOUT_FILENO};
    w->has_reader = fstat(STDOUT_FILENO, &out) == 0 && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode)) &&
                    kube_loop_fd_add(w->session->loop, &w->reader, &err) == 0;
}

static void end_output(struct watch *w)
{
    if (w->shows)
        display_end(&w->display, w->status >= 0 && !w->signal);
    else if (w->on_terminal && w->once && w->status == 0)
        display_print(&w->display);
    else
        write_lines(w);
    if (w->has_reader)
        kube_loop_fd_remove(w->session->loop, &w->reader);
    if (w->last_words[0] && !w->signal)
        say(WHO, "%s", w->last_words);
}

/* Pages run the loop themselves, so they are opened outside of it. */
static int follow(struct watch *w)
{
    while (!w->over) {
        if (w->pages.key != KEY_OTHER)
            pages_open(&w->pages);
        else if (kube_loop_run(w->session->loop, &w->err) < 0)
            return -1;
        if (w->ends_later && !w->pages.open)
            end(w, w->status);
    }
    return 0;
}

static int read_options(struct watch *w, const struct args *a, struct err *err)
{
    const char *until = args_text(a, "until", NULL), *timeout = args_text(a, "timeout", NULL);

    w->json = args_has(a, "output");
    w->on_terminal &= !w->json;
    w->once = args_has(a, "once");
    w->timeout_s = -1;
    if (w->name && (args_has(a, "all-namespaces") || args_has(a, "selector")))
        return usage_wrong(err, "NAME goes with neither --all-namespaces nor --selector");
    if (until && (!w->name || w->once))
        return usage_wrong(err, "--until needs NAME, and excludes --once");
    if (timeout && !until)
        return usage_wrong(err, "--timeout needs --until");
    if (until)
        w->until = strcmp(until, "running") ? UNTIL_FINISHED : UNTIL_RUNNING;
    return timeout ? span_parse("timeout", timeout, &w->timeout_s, err) : 0;
}

static void prepare(struct watch *w, const struct args *a, const char *what)
{
    static const struct jobfeed_sink EVENTS = {.object = on_event};
    const bool all = args_has(a, "all-namespaces");

    w->display.loop = w->session->loop;
    w->display.board = &w->board;
    w->display.table.what = what;
    w->display.table.with_ns = all;
    w->display.table.waiting = true;
    w->display.key = on_key;
    w->display.ctx = w;
    w->pages.session = w->session;
    w->pages.display = &w->display;
    w->pages.over = &w->over;
    w->late = (struct kube_loop_timer){.fire = on_late, .ctx = w};
    board_init(&w->board);
    if (!session_may_ask(w->session->http)) /* else the first answer does */
        begin_time(w);
    w->feed = jobfeed_new(&(struct jobfeed_options){.session = w->session,
                                                    .ns = all ? NULL : w->session->ns,
                                                    .name = w->name,
                                                    .label_selector = args_text(a, "selector", NULL),
                                                    .jobs = {.list_begin = on_list_begin,
                                                             .list_end = on_list_end,
                                                             .object = on_job,
                                                             .removed = on_removed},
                                                    .events = w->on_terminal && !w->once ? &EVENTS : NULL,
                                                    .state = on_state,
                                                    .failed = on_failed,
                                                    .ctx = w});
}

static int check(const struct args *a, struct err *err)
{
    struct watch w = {.name = a->n_operands ? a->operands[0] : NULL};

    return read_options(&w, a, err);
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    const bool all = args_has(a, "all-namespaces");
    const char *labels = args_text(a, "selector", NULL);
    struct watch w = {.session = s,
                      .name = a->n_operands ? a->operands[0] : NULL,
                      .on_terminal = terminal_of(STDOUT_FILENO).is_terminal,
                      .lines = BUF_INIT(LINES_BYTES_MAX)};
    char what[400];

    if (read_options(&w, a, err) < 0)
        return -1;
    snprintf(what, sizeof(what), "%s%.63s%s%.200s", all ? "all namespaces" : "namespace ", all ? "" : s->ns,
             labels ? ", " : "", labels ? labels : "");
    prepare(&w, a, what);
    begin_output(&w);
    const int rc = follow(&w);
    end_output(&w);
    pages_release(&w.pages);
    kube_loop_timer_cancel(s->loop, &w.late);
    jobfeed_free(w.feed);
    board_release(&w.board);
    buf_release(&w.lines);
    if (w.signal)
        session_die_of(w.signal);
    if (rc < 0 || w.status < 0) {
        *err = w.err;
        return -1;
    }
    return w.status;
}

static const struct option_row OPTIONS[] = {
    {"all-namespaces", 'A', NULL, .help = "the jobs of all namespaces"},
    {"selector", 'l', "LABELS", .help = "only jobs with these labels, as kubectl's -l"},
    {"once", 0, NULL, .help = "print the jobs as they are now, and end"},
    {"until", 0, "WHAT", option_choice,
     .help = "end when the job is running, or finished (succeeded or failed)",
     .words = OPTION_WORDS("running", "finished")},
    {"timeout", 0, "TIME",
     .help = "with --until: give up after 90s, 5m, 1h30m; 0: look once (default: never)"},
    OUTPUT_OPTION("json: a JSON object per line, for each job and each change of it"),
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj watch", "Follow all jobs of the namespace."},
    {"kubectl ptj watch bert > bert.log", "A line for each change of the job, until it has ended."},
    {"kubectl ptj watch --all-namespaces --selector team=nlp", "The jobs of a team, wherever they are."},
    {"kubectl ptj watch bert --until finished --timeout 2h && kubectl ptj logs bert --no-follow",
     "In a script: wait for the job's success, then print its logs."},
    {"kubectl ptj watch --once -o json | jq -r .name", "The names of the jobs there are."},
    {0},
};

const struct verb VERB_WATCH = {
    .name = "watch",
    .operands = "[NAME]",
    .operands_min = 0,
    .operands_max = 1,
    .words = VERB_JOBS,
    .summary = "follow all jobs, or one, as they train",
    .about = watch_txt,
    .options = OPTIONS,
    .examples = EXAMPLES,
    .check = check,
    .run = run,
};
