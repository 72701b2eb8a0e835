/* board.c - keep what `kubectl ptj watch` shows of each job. */
#include "cli/watch/board.h"

#include "cli/shown.h"
#include "common/memory.h"
#include "common/text.h"
#include "operator/api/trainjob.h"
#include "operator/plan/rootcause.h"

#include <math.h>
#include <string.h>

void board_init(struct board *b)
{
    b->jobs = kube_store_new(free);
}

void board_release(struct board *b)
{
    kube_store_free(b->jobs);
    *b = (struct board){0};
}

/* The job, a new one if there are fewer than `max`. */
static struct board_job *entry(struct board *b, const char *ns, const char *name, size_t max)
{
    struct board_job *j = board_find(b, ns, name);

    if (j || !ns || !name || !*name || strlen(ns) >= sizeof(j->ns) || strlen(name) >= sizeof(j->name) ||
        kube_store_count(b->jobs) >= max)
        return j;
    j = memory_must(calloc(1, sizeof(*j)));
    shown_text(j->ns, sizeof(j->ns), ns);
    shown_text(j->name, sizeof(j->name), name);
    j->exit_code = -1;
    kube_store_put(b->jobs, ns, name, NULL, NULL, j);
    return j;
}

struct board_job *board_find(const struct board *b, const char *ns, const char *name)
{
    const struct kube_store_entry *e = ns && name ? kube_store_get(b->jobs, ns, name) : NULL;

    return e ? e->value : NULL;
}

void board_remove(struct board *b, const char *ns, const char *name)
{
    if (ns && name)
        kube_store_remove(b->jobs, ns, name);
}

static void take_failure(struct board_job *j, const cJSON *status)
{
    const cJSON *f = json_child(status, "lastFailure");
    const int64_t code = json_i64(f, "exitCode", -1), rank = json_i64(f, "rank", -1);
    const char *message = json_str(f, "message"), *reason = json_str(f, "reason"), *pod = json_str(f, "pod");
    cleanup_arena struct arena a = {0};
    const char *line = rootcause_line(message ? message : "", "", &a);
    char text[4 * BOARD_TEXT_BYTES] = "";

    j->exit_code = code >= 0 && code <= 255 ? (int32_t)code : -1;
    if (rank >= 0 && !rootcause_names(line, rank))
        text_add(text, sizeof(text), "rank %lld: ", (long long)rank);
    else if (rank < 0 && pod)
        text_add(text, sizeof(text), "%.253s: ", pod);
    if (reason && !strstr(reason, "ExitCode") &&
        strcmp(reason, "NoProgress") != 0) /* these add nothing to the line */
        text_add(text, sizeof(text), "%.*s%s", (int)text_head(reason, BOARD_REASON_BYTES), reason,
                 line[0] ? ": " : "");
    else if (!line[0] && j->exit_code > 0)
        text_add(text, sizeof(text), "exit code %d", (int)j->exit_code);
    text_add(text, sizeof(text), "%s", line);
    shown_text(j->failure, sizeof(j->failure), f ? text : "");
}

static void take_progress(struct board_job *j, const cJSON *status)
{
    const int64_t before_ms = j->progress.time_ms;

    jobprogress_decode(json_child(status, "progress"), &j->progress);
    if (!j->progress.time_ms || j->progress.time_ms == before_ms || !isfinite(j->progress.loss))
        return;
    if (j->n_losses == BOARD_LOSSES) {
        memmove(j->losses, j->losses + 1, sizeof(j->losses) - sizeof(j->losses[0]));
        j->n_losses--;
    }
    j->losses[j->n_losses++] = j->progress.loss;
}

struct board_job *board_put(struct board *b, const cJSON *object)
{
    const cJSON *meta = json_child(object, "metadata");
    const cJSON *status = json_child(object, "status");
    const char *ns = json_str(meta, "namespace"), *name = json_str(meta, "name"),
               *uid = json_str(meta, "uid");
    struct board_job *j = entry(b, ns, name, BOARD_JOBS_MAX);

    if (!j)
        return NULL;
    if (j->listed && uid && strcmp(j->uid, uid)) { /* another job of that name */
        board_remove(b, ns, name);
        if (!(j = entry(b, ns, name, BOARD_JOBS_MAX)))
            return NULL;
    }
    kube_store_unmark_one(kube_store_get(b->jobs, ns, name));
    j->listed = true;
    shown_text(j->uid, sizeof(j->uid), uid);
    j->phase = job_phase_of(status);
    shown_text(j->ready, sizeof(j->ready), json_str(status, "ready"));
    shown_text(j->reason, sizeof(j->reason), json_str(status, "reason"));
    const int64_t restarts = json_i64(status, "restarts", 0);
    j->restarts = restarts > 0 && restarts <= COUNT_MAX ? (int32_t)restarts : 0;
    j->created_ms = decode_instant(meta, "creationTimestamp");
    j->completion_ms = decode_instant(status, "completionTime");
    take_failure(j, status);
    take_progress(j, status);
    return j;
}

void board_event(struct board *b, const cJSON *event)
{
    const cJSON *about = json_child(event, "involvedObject");
    const char *kind = json_str(about, "kind"), *uid = json_str(about, "uid");
    const char *reason = json_str(event, "reason"), *message = json_str(event, "message");
    const char *type = json_str(event, "type");
    int64_t at = decode_instant(event, "lastTimestamp");
    char text[2 * BOARD_TEXT_BYTES];

    if (!kind || strcmp(kind, TRAINJOB_KIND))
        return;
    /* Anybody may write events about jobs that do not exist: room for those that do is left. */
    struct board_job *j = entry(b, json_str(about, "namespace"), json_str(about, "name"), BOARD_JOBS_MAX / 2);
    at = at ? at : decode_instant(event, "eventTime");
    if (!j || at < j->event.time_ms || (j->listed && uid && strcmp(uid, j->uid)))
        return;
    j->event.time_ms = at;
    j->event.warning = type && !strcmp(type, "Warning");
    snprintf(text, sizeof(text), "%.60s: %.*s", reason ? reason : "?",
             message ? (int)text_head(message, BOARD_TEXT_BYTES) : 0, message ? message : "");
    shown_text(j->event.text, sizeof(j->event.text), text);
}

void board_list_begin(struct board *b)
{
    kube_store_mark(b->jobs);
}

struct gone {
    void (*report)(void *ctx, const struct board_job *j);
    void *ctx;
};

static void on_gone(void *ctx, const struct kube_store_entry *e)
{
    const struct gone *g = ctx;
    const struct board_job *j = e->value;

    if (g->report && j->listed)
        g->report(g->ctx, j);
}

size_t board_list_end(struct board *b, void (*gone)(void *ctx, const struct board_job *j), void *ctx)
{
    return kube_store_sweep(b->jobs, on_gone, &(struct gone){gone, ctx});
}

static int order_of(enum job_phase p)
{
    static const int ORDER[JOB_PHASES] = {
        [JOB_RUNNING] = 0, [JOB_NONE] = 1,     [JOB_PENDING] = 1, [JOB_UNKNOWN] = 1,
        [JOB_PAUSED] = 2,  [JOB_RESUMING] = 1, [JOB_FAILED] = 3,  [JOB_SUCCEEDED] = 4};

    return ORDER[p];
}

static int by_interest(const void *left, const void *right)
{
    const struct board_job *a = *(struct board_job *const *)left, *b = *(struct board_job *const *)right;
    const int pa = order_of(a->phase), pb = order_of(b->phase);

    if (pa != pb)
        return pa < pb ? -1 : 1;
    if (pa >= order_of(JOB_FAILED) && a->completion_ms != b->completion_ms)
        return a->completion_ms > b->completion_ms ? -1 : 1;
    const int ns = strcmp(a->ns, b->ns);
    return ns ? ns : strcmp(a->name, b->name);
}

struct board_job **board_sorted(const struct board *b, size_t *ret_n)
{
    struct board_job **all = memory_must(calloc(kube_store_count(b->jobs) + 1, sizeof(*all)));
    size_t n = 0;

    for (const struct kube_store_entry *e = kube_store_first(b->jobs); e; e = kube_store_next(b->jobs, e))
        if (((const struct board_job *)e->value)->listed)
            all[n++] = e->value;
    qsort(all, n, sizeof(*all), by_interest);
    *ret_n = n;
    return all;
}
