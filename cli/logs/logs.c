/* logs.c - kubectl ptj logs: print the logs of all pods of a job as one, in order of time. */
#include "cli/logs/logs.h"
#include "cli/logs/follow.h"
#include "cli/logs/view.h"
#include "cli/say.h"
#include "cli/shown.h"
#include "cli/span.h"
#include "cli/terminal.h"
#include "cli/texts.h"
#include "cli/usage.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/json.h"
#include "operator/api/jobstatus.h"
#include "operator/plan/rootcause.h"

#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- one paragraph for each failure of status.failures */

static void put(struct buf *out, const char *before, const char *text)
{
    if (!text || !text[0])
        return;
    buf_puts(out, before, NULL);
    shown_line(out, sv_from(text));
}

static void put_head(const struct failure *f, struct buf *out)
{
    char when[CLOCK_RFC3339_BYTES];

    clock_rfc3339(f->time_ms, false, when);
    buf_printf(out, NULL, "attempt %d, %s", f->attempt, when);
    put(out, ", pod ", f->pod);
    put(out, " on node ", f->node);
    if (f->rank >= 0)
        buf_printf(out, NULL, ", rank %d", f->rank);
    if (f->exit_code >= 0)
        buf_printf(out, NULL, ", exit code %d", f->exit_code);
    if (f->signal)
        buf_printf(out, NULL, " (signal %d)", f->signal);
    put(out, ": ", f->reason);
    buf_puts(out, "\n", NULL);
}

/* lastFailure is the newest of the failures, with more of its message. */
static const char *message_of(const struct jobstatus *st, const struct failure *f, struct arena *a)
{
    const struct failure *last = st->last_failure;
    const bool same = last && last->attempt == f->attempt && last->time_ms == f->time_ms && last->pod &&
                      f->pod && !strcmp(last->pod, f->pod);

    return same && last->message ? rootcause_excerpt(last->message, a) : f->message;
}

/* `grep`: only the lines that fit this pattern, and the failures that have such lines; NULL: all. */
static void earlier_print(const struct jobstatus *st, const regex_t *grep, struct buf *out)
{
    cleanup_arena struct arena a = {0};

    for (int i = 0; i < st->n_failures; i++) {
        const char *message = message_of(st, &st->failures[i], &a);
        struct sv rest = sv_from(message ? message : ""), line;
        bool has_head = !grep;
        if (has_head)
            put_head(&st->failures[i], out);
        while (rest.len && sv_next(&rest, '\n', &line)) {
            if (!view_wants(grep, line))
                continue;
            if (!has_head)
                put_head(&st->failures[i], out);
            buf_puts(out, "  ", NULL);
            shown_line(out, line);
            buf_puts(out, "\n", NULL);
            has_head = true;
        }
    }
}

/* ---- the verb */

enum { TAIL_MAX = 1000000000, EARLIER_BYTES = 1 << 20 };

static struct follow_options defaults(void)
{
    return (struct follow_options){
        .tail = -1,
        .follow = true,
        .view = {.colours = terminal_of(STDOUT_FILENO).colours, .safe = isatty(STDOUT_FILENO)}};
}

/* Unless --grep is given, *ret is empty. */
static int read_pattern(const struct args *a, regex_t *ret, struct follow_options *o, struct err *err)
{
    const char *pattern = args_text(a, "grep", NULL);
    const int code = pattern ? regcomp(ret, pattern, REG_EXTENDED | REG_NOSUB) : 0;
    char why[128];

    if (code) {
        regerror(code, ret, why, sizeof(why));
        return usage_wrong(err, "--grep: %s: \"%.80s\"", why, pattern);
    }
    o->view.grep = pattern ? ret : NULL;
    return 0;
}

/* *grep is the caller's to free on success. */
static int read_options(const struct args *a, struct follow_options *o, regex_t *grep, struct err *err)
{
    *o = defaults();
    o->follow = !args_has(a, "no-follow");
    o->view.times = args_has(a, "timestamps");
    o->container = args_text(a, "container", NULL);
    if (o->container && !decode_is_dns_label(o->container, DECODE_LABEL_BYTES, false))
        return usage_wrong(err, "--container: expected the name of a container, got \"%.60s\"", o->container);
    if (o->container && args_has(a, "previous"))
        return usage_wrong(err, "--container and --previous exclude each other: the status keeps what the "
                                "training container printed");
    if (args_has(a, "follow") && args_has(a, "no-follow"))
        return usage_wrong(err, "--follow and --no-follow exclude each other");
    if (args_has(a, "rank") && ranks_parse(args_text(a, "rank", ""), &o->ranks, err) < 0)
        return -1;
    o->ranks.pod = args_text(a, "pod", NULL);
    if (args_has(a, "since") && span_parse("since", args_text(a, "since", ""), &o->since_s, err) < 0)
        return -1;
    o->tail = args_i64(a, "tail", o->tail);
    return read_pattern(a, grep, o, err);
}

static int print_earlier(const struct trainjob *job, const regex_t *grep, struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(EARLIER_BYTES);

    earlier_print(&job->status, grep, &out);
    if (buf_check(&out, err) < 0)
        return -1;
    if (!job->status.n_failures)
        say("kubectl ptj logs", "no attempt of %s has failed", job->name);
    fputs(buf_str(&out), stdout);
    return 0;
}

static int check_count(const struct trainjob *job, const struct ranks *r, struct err *err)
{
    const int pods = ranks_count_pods(r, job);

    if (r->n && !job->spec_error && ranks_check_order(&job->spec, NULL, err) < 0)
        return -1;
    if (pods > FOLLOW_PODS_MAX)
        return err_set(
            err, ERR_INVALID,
            "%s has %d pods, and the logs of %d can be read at once: choose some with --rank or --pod",
            job->name, pods, FOLLOW_PODS_MAX);
    if (!pods && (r->n || r->pod) && !job->spec_error)
        return err_set(err, ERR_INVALID, "--%s: %s has no such %s: it has %d pods", r->pod ? "pod" : "rank",
                       job->name, r->pod ? "pod" : "rank", job->spec.pods);
    return 0;
}

static int print_logs(struct session *s, const char *name, bool previous, const struct follow_options *o,
                      struct err *err)
{
    cJSON *tree;

    if (session_job(s, name, &tree, err) < 0)
        return -1;
    cleanup_trainjob struct trainjob *job = trainjob_decode(tree, err);
    if (!job)
        return -1;
    if (previous)
        return print_earlier(job, o->view.grep, err);
    return check_count(job, &o->ranks, err) < 0 ? -1 : follow_job(s, TAKE(job), o, err);
}

static int check_logs(const struct args *a, struct err *err)
{
    struct follow_options o;
    regex_t grep = {0};

    if (read_options(a, &o, &grep, err) < 0)
        return -1;
    regfree(&grep);
    return 0;
}

static int run_logs(struct session *s, const struct args *a, struct err *err)
{
    struct follow_options o;
    regex_t grep = {0};

    if (read_options(a, &o, &grep, err) < 0)
        return -1;
    const int status = print_logs(s, a->operands[0], args_has(a, "previous"), &o, err);
    regfree(&grep);
    return status;
}

struct following {
    const struct session *session;
    const char *name;
};

static void on_interrupt(void *ctx, int signal)
{
    const struct following *f = ctx;

    say("kubectl ptj logs", "the job goes on: `kubectl ptj logs %s -n %s%s` prints its logs again", f->name,
        f->session->ns, buf_str(&f->session->options));
    session_die_of(signal);
}

int logs_print(struct session *s, const char *name, int64_t tail, struct err *err)
{
    struct follow_options o = defaults();

    o.tail = tail;
    return print_logs(s, name, false, &o, err);
}

int logs_follow(struct session *s, const char *name, struct err *err)
{
    struct following f = {s, name};

    if (kube_loop_signals(s->loop, (const int[]){SIGINT}, 1, on_interrupt, &f, err) < 0)
        return -1;
    return logs_print(s, name, -1, err);
}

static const struct option_row OPTIONS[] = {
    {"rank", 'r', "N,M-K", .help = "only the pods with these ranks"},
    {"pod", 0, "POD", .help = "only this pod: node-3, or its whole name"},
    {"container", 'c', "NAME", .help = "this container of each pod (default: the one that trains)"},
    {"grep", 0, "PATTERN", .help = "only lines that match this POSIX extended expression"},
    {"follow", 'f', NULL, .help = "continue until the job ends (the default)"},
    {"no-follow", 0, NULL, .help = "print what is there now, and end"},
    {"tail", 0, "LINES", option_integer, .max = TAIL_MAX,
     .help = "begin with the last LINES lines of each pod"},
    {"since", 0, "TIME", .help = "begin with the lines of the last 90s, 5m, 1h30m"},
    {"timestamps", 0, NULL, .help = "print the time of each line"},
    {"previous", 'p', NULL, .help = "print what the status saved of failed attempts, and end"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj logs bert", "All pods, until the job has ended."},
    {"kubectl ptj logs bert --rank 0,4-7 --since 10m", "The pods of some ranks, from ten minutes ago."},
    {"kubectl ptj logs bert --grep 'nan|error'", "Only lines with one of these words."},
    {"kubectl ptj logs bert --pod node-3 -c fetch --tail 100 --no-follow",
     "The last 100 lines of an init container in one pod."},
    {"kubectl ptj logs bert --previous", "What the status saved of failed attempts."},
    {0},
};

const struct verb VERB_LOGS = {
    .name = "logs",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_JOBS,
    .options = OPTIONS,
    .examples = EXAMPLES,
    .summary = "print the logs of all pods of a job, merged in order of time",
    .about = logs_txt,
    .check = check_logs,
    .run = run_logs,
};
