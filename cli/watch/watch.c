/* watch.c - kubectl ptj watch: follow jobs on the terminal, or as lines in a pipe. */
#include "cli/jobfeed.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "cli/watch/display.h"
#include "cli/watch/told.h"

#include "common/fsutil.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINES_BYTES_MAX = 16 << 20 };

struct watch {
    struct session *session;
    const char *name; /* NULL: all jobs */
    struct board board;
    struct jobfeed *feed;
    struct display display;
    bool on_terminal, in_list, lost_told;
    bool shows; /* it has taken the terminal */
    bool seen;  /* the job of that name was there */
    bool over;
    struct buf lines; /* not yet written */
    struct kube_loop_fd reader;
    bool has_reader;
    int status, signal;
    struct err err;
};

static void end(struct watch *w, int status)
{
    if (!w->over)
        w->status = status;
    w->over = true;
    kube_loop_stop(w->session->loop);
}

static void on_quit(void *ctx)
{
    end(ctx, 0);
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
    if (w->on_terminal)
        display_changed(&w->display);
    else if (!w->in_list)
        write_lines(w);
}

static void on_job(void *ctx, const cJSON *object)
{
    struct watch *w = ctx;
    struct board_job *j = board_put(&w->board, object);

    if (!j)
        return;
    if (!w->on_terminal)
        told_job(j, w->display.table.with_ns, kube_loop_wall_ms(w->session->loop), &w->lines);
    changed(w);
    w->seen = true;
    if (w->name && (j->phase == JOB_SUCCEEDED || j->phase == JOB_FAILED)) {
        w->display.table.waiting = false;
        end(w, j->phase == JOB_FAILED);
    }
}

static void gone(void *ctx, const struct board_job *j)
{
    struct watch *w = ctx;

    if (!w->on_terminal)
        told_deleted(j, w->display.table.with_ns, kube_loop_wall_ms(w->session->loop), &w->lines);
    if (!w->name)
        return;
    (void)err_set(&w->err, ERR_NOT_FOUND, "%.63s was deleted", j->name);
    end(w, -1);
}

static void on_removed(void *ctx, const char *ns, const char *name)
{
    struct watch *w = ctx;
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
    if (w->on_terminal)
        display_changed(&w->display);
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

static void on_list_begin(void *ctx)
{
    struct watch *w = ctx;

    if (w->on_terminal && !w->shows)
        show(w);
    w->in_list = true;
    board_list_begin(&w->board);
}

static void on_list_end(void *ctx)
{
    struct watch *w = ctx;

    board_list_end(&w->board, gone, w);
    w->in_list = w->display.table.waiting = false;
    if (w->name && !w->seen) {
        (void)err_set(&w->err, ERR_NOT_FOUND, "there is no training job \"%.63s\" in namespace %.63s",
                      w->name, w->session->ns);
        end(w, -1);
    }
    changed(w);
}

static void say_state(const struct watch *w, char *to, size_t size)
{
    const struct jobfeed_trouble *t = jobfeed_trouble(w->feed);
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

static void on_state(void *ctx)
{
    struct watch *w = ctx;
    char note[DISPLAY_NOTE_BYTES];
    const bool lost = jobfeed_trouble(w->feed)->since_ms;

    say_state(w, note, sizeof(note));
    if (w->shows) {
        snprintf(w->display.note, sizeof(w->display.note), "%s", note);
        display_changed(&w->display);
    } else if (lost && !w->lost_told) {
        fprintf(stderr, "kubectl ptj watch: %s\n", note);
    } else if (!lost && w->lost_told) {
        fputs("kubectl ptj watch: the API server answers again\n", stderr);
    }
    w->lost_told = lost;
}

static void on_failed(void *ctx, const struct err *err)
{
    struct watch *w = ctx;

    w->err = *err;
    end(w, -1);
}

/* Nobody reads on: no other event was asked for. So it ends at once, not when there is a line to write. */
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
    else
        write_lines(w);
    if (w->has_reader)
        kube_loop_fd_remove(w->session->loop, &w->reader);
}

/* As the signal would have ended a program that does not catch it: a shell's loop ends, too. */
static void die_of(int signal)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
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
    int rc;

    if (w.name && (all || labels))
        return usage_wrong(err, "NAME goes with neither --all-namespaces nor --selector");
    snprintf(what, sizeof(what), "%s%.63s%s%.200s", all ? "all namespaces" : "namespace ", all ? "" : s->ns,
             labels ? ", " : "", labels ? labels : "");
    w.display.loop = s->loop;
    w.display.board = &w.board;
    w.display.table.what = what;
    w.display.table.with_ns = all;
    w.display.table.waiting = true;
    w.display.quit = on_quit;
    w.display.ctx = &w;
    board_init(&w.board);
    w.feed = jobfeed_new(&(struct jobfeed_options){.session = s,
                                                   .ns = all ? NULL : s->ns,
                                                   .name = w.name,
                                                   .label_selector = labels,
                                                   .events = w.on_terminal,
                                                   .list_begin = on_list_begin,
                                                   .list_end = on_list_end,
                                                   .job = on_job,
                                                   .removed = on_removed,
                                                   .event = on_event,
                                                   .state = on_state,
                                                   .failed = on_failed,
                                                   .ctx = &w});
    begin_output(&w);
    rc = kube_loop_run(s->loop, &w.err);
    end_output(&w);
    jobfeed_free(w.feed);
    board_release(&w.board);
    buf_release(&w.lines);
    if (w.signal)
        die_of(w.signal);
    if (rc < 0 || w.status < 0) {
        *err = w.err;
        return -1;
    }
    return w.status;
}

static const struct option_row OPTIONS[] = {
    {"all-namespaces", 'A', NULL, .help = "the jobs of all namespaces"},
    {"selector", 'l', "LABELS", .help = "only jobs with these labels, as kubectl's -l"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj watch", "Follow all jobs of the namespace."},
    {"kubectl ptj watch bert", "Follow one job, until it has ended."},
    {"kubectl ptj watch --all-namespaces --selector team=nlp", "The jobs of a team, wherever they are."},
    {"kubectl ptj watch bert > bert.log", "A line for each change of the job."},
    {0},
};

const struct verb VERB_WATCH = {
    .name = "watch",
    .operands = "[NAME]",
    .operands_min = 0,
    .operands_max = 1,
    .words = VERB_JOBS,
    .summary = "follow all jobs, or one, as they train",
    .about =
        "On a terminal: a table that redraws itself, with phase, pods ready, progress, time left, loss (the "
        "sparkline shows the values seen since watch began), restarts, age and the last event of each job. "
        "Running jobs stand first. q or Ctrl-C ends it and leaves the last table.\n"
        "Into a pipe or file: a line for each change of a job: phase, reason, restart, progress every 10 per "
        "cent or minute, end.\n"
        "With NAME it ends when the job has ended.\n"
        "A lost API server is said, and asked again until it answers.\n"
        "Exit status: 0; with NAME 0 when the job succeeded, 1 when it failed or was deleted.",
    .options = OPTIONS,
    .examples = EXAMPLES,
    .run = run,
};
