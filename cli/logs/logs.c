/* logs.c - kubectl ptj logs: the logs of all pods of a job as one, in order of time. */
#include "cli/logs/earlier.h"
#include "cli/logs/follow.h"
#include "cli/say.h"
#include "cli/span.h"
#include "cli/terminal.h"
#include "cli/usage.h"

#include "common/json.h"

#include <stdio.h>
#include <unistd.h>

enum { TAIL_MAX = 1000000000, EARLIER_BYTES = 1 << 20 };

static int read_options(const struct args *a, struct follow_options *o, struct err *err)
{
    const struct terminal t = terminal_of(STDOUT_FILENO);

    *o = (struct follow_options){.feed.tail = -1,
                                 .follow = !args_has(a, "no-follow"),
                                 .view = {t.colours, isatty(STDOUT_FILENO), args_has(a, "timestamps")}};
    if (args_has(a, "follow") && args_has(a, "no-follow"))
        return usage_wrong(err, "--follow and --no-follow exclude each other");
    if (args_has(a, "rank") && ranks_parse(args_text(a, "rank", ""), &o->ranks, err) < 0)
        return -1;
    o->ranks.pod = args_text(a, "pod", NULL);
    if (args_has(a, "since") && span_parse("since", args_text(a, "since", ""), &o->feed.since_s, err) < 0)
        return -1;
    return args_i64(a, "tail", 0, TAIL_MAX, &o->feed.tail, err);
}

static int print_earlier(const struct trainjob *job, struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(EARLIER_BYTES);

    if (earlier_print(&job->status, &out, err) < 0)
        return -1;
    if (!out.len)
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

static int run_logs(struct session *s, const struct args *a, struct err *err)
{
    cleanup_trainjob struct trainjob *job = NULL;
    struct follow_options o;
    cJSON *tree;

    if (read_options(a, &o, err) < 0 || session_job(s, a->operands[0], &tree, err) < 0)
        return -1;
    job = trainjob_decode(tree, err);
    if (!job)
        return -1;
    if (args_has(a, "previous"))
        return print_earlier(job, err);
    return check_count(job, &o.ranks, err) < 0 ? -1 : follow_job(s, TAKE(job), &o, err);
}

static const struct option_row OPTIONS[] = {
    {"rank", 'r', "N,M-K",
     .help = "only the pods that have these ranks, the first pod having the first ones"},
    {"pod", 0, "POD", .help = "only this pod, as its lines name it: node-3, or the whole name"},
    {"follow", 'f', NULL, .help = "go on until the job has ended (this is the default)"},
    {"no-follow", 0, NULL, .help = "print what is there now, and end"},
    {"tail", 0, "LINES", .help = "begin with the last so many lines of each pod"},
    {"since", 0, "TIME", .help = "begin with the lines of the last 90s, 5m, 1h30m"},
    {"timestamps", 0, NULL, .help = "print the time of each line"},
    {"previous", 'p', NULL, .help = "print what the status kept of attempts that failed, and end"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj logs bert", "All pods, until the job has ended."},
    {"kubectl ptj logs bert --rank 0,4-7 --since 10m", "The pods of some ranks, from ten minutes ago."},
    {"kubectl ptj logs bert --pod node-3 --tail 100 --no-follow", "The last 100 lines of one pod."},
    {"kubectl ptj logs bert --previous", "What the status kept of attempts that failed."},
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
    .about =
        "Lines of the training containers, with the pod in front. Waits for pods that do not run yet, goes "
        "on over "
        "restarts and over a lost API server, and ends when the job has ended: with 0 if it succeeded, with "
        "1 if it "
        "failed; with --no-follow the exit status is 0 when all was read.\n"
        "Up to 64 pods are read at once; of a larger job --rank or --pod chooses some. With the operator's "
        "own launcher, with "
        "rdzvBackend static and without torchrun the pods have their ranks in the order of replicaSpecs and "
        "indices "
        "(while an elastic job lacks a pod, those behind it move up). The torchrun of an image gives ranks "
        "in its "
        "rendezvous, in another order: then --rank is refused.\n"
        "Pods of an earlier attempt are deleted with their logs. What the job's status kept of them "
        "--previous "
        "prints.",
    .run = run_logs,
};
