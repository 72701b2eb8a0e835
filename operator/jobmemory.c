/* jobmemory.c - record our writes, doubts and problems of one job between reconciles. */
#include "operator/jobmemory.h"

#include "common/backoff.h"
#include "common/memory.h"
#include "kube/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LATE_MS = 5000,
    LATE_MAX_MS = 60000,
    DOUBT_MS = 50,
    DOUBT_MAX_MS = 60000,
    PROBLEM_DELAY_MS = 1000,
    PROBLEM_DELAY_MAX_MS = 60000,
    IN_VAIN_MS = 300000,
    PROBLEM_MESSAGE_MS = 600000,
    SLOW_MS = 1000,
    WAITS_MAX = 60,
    WEBHOOK_DELAY_MS = 900,
    WEBHOOK_MS = 60000,
};

struct jobmemory *jobmemory_new(void)
{
    return memory_must(calloc(1, sizeof(struct jobmemory)));
}

void jobmemory_free(void *memory)
{
    struct jobmemory *m = memory;

    if (m && m->holder)
        *m->holder = NULL;
    free(m);
}

/* ---- what the caches have to include */

bool jobmemory_is_shown(struct jobmemory *m, const struct watches *w, enum child_kind kind)
{
    struct jobmemory_mark *mark = &m->written[kind];

    if (mark->version[0] && !watches_show(w, kind, mark->version, mark->lists))
        return false;
    mark->version[0] = '\0';
    return true;
}

bool jobmemory_doubts(const struct jobmemory *m, const struct watches *w, const char *job_version)
{
    return strcmp(m->doubt.version, job_version) == 0 && !watches_listed(w, CHILD_JOB, m->doubt.lists);
}

int64_t jobmemory_rest_ms(const struct jobmemory *m, const char *job_version, int64_t now_ms)
{
    bool rests = strcmp(m->doubt.version, job_version) == 0 && now_ms < m->doubt_until_ms;

    return rests ? m->doubt_until_ms - now_ms : 0;
}

bool jobmemory_is_overdue(struct jobmemory *m, enum child_kind kind, bool late, int64_t now_ms)
{
    struct jobmemory_late *l = &m->late[kind];

    if (!late || !l->since_ms)
        *l = (struct jobmemory_late){.since_ms = late ? now_ms : 0};
    if (!late || now_ms < l->since_ms + backoff_delay_ms(LATE_MS, LATE_MAX_MS, l->lists))
        return false;
    l->since_ms = now_ms;
    l->lists++;
    return true;
}

/* After a restore of etcd versions are lower; then a later list satisfies the mark. */
static void record_versions(struct jobmemory *m, const struct watches *w, const struct actions_result *r)
{
    for (int kind = 0; kind < CHILD_KINDS; kind++) {
        struct jobmemory_mark *mark = &m->written[kind];
        if (!r->versions[kind][0])
            continue;
        mark->lists = watches_lists(w, (enum child_kind)kind);
        if (!version_is_newer(mark->version, r->versions[kind]))
            snprintf(mark->version, sizeof(mark->version), "%s", r->versions[kind]);
    }
}

static void record_doubt(struct jobmemory *m, const struct watches *w, const struct actions_result *r,
                         const struct jobmemory_pass *pass, int64_t mono_ms)
{
    m->lost = (m->lost && !r->status_written) || r->lost;
    if (!r->doubt)
        return;
    m->doubts = strcmp(m->doubt.version, pass->version) == 0 ? m->doubts + 1 : 0;
    m->doubt_until_ms = mono_ms + backoff_delay_ms(DOUBT_MS, DOUBT_MAX_MS, m->doubts);
    snprintf(m->doubt.version, sizeof(m->doubt.version), "%s", pass->version);
    m->doubt.lists = watches_lists(w, CHILD_JOB);
}

/* ---- problems of creates */
/* The server's message changes from try to try (times, counts). Keep the first one for a while, so that a
 * retry with the same problem causes no status write. */
static bool same_again(const struct jobmemory *m, const struct actions_result *r, int64_t generation,
                       int64_t mono_ms)
{
    return m->problem.kind == r->problem.kind && m->problem_code == r->err.code &&
           m->problem_generation == generation && strcmp(m->problem_name, r->problem.name) == 0 &&
           mono_ms < m->problem_since_ms + PROBLEM_MESSAGE_MS;
}

int64_t jobmemory_webhook_ms(const struct jobmemory *m, int64_t mono_ms)
{
    return m->webhook_since_ms && mono_ms < m->webhook_since_ms + WEBHOOK_MS ? WEBHOOK_DELAY_MS : -1;
}

/* The API server's own words; no webhook that answers can imitate them at the begin of a message. */
static void record_webhook(struct jobmemory *m, const struct actions_result *r, int64_t mono_ms)
{
    bool down = !r->ok && r->err.code == 500 && strstr(r->err.msg, "failed calling webhook");

    if (r->ok && m->problem.kind == PROBLEM_NONE)
        m->webhook_since_ms = 0;
    else if (down && !m->webhook_since_ms)
        m->webhook_since_ms = mono_ms;
}

static void store_problem(struct jobmemory *m, const struct actions_result *r, int64_t generation,
                          int64_t mono_ms)
{
    bool soon = jobmemory_webhook_ms(m, mono_ms) >= 0;
    int64_t delay =
        soon ? WEBHOOK_DELAY_MS : backoff_delay_ms(PROBLEM_DELAY_MS, PROBLEM_DELAY_MAX_MS, m->problem_count);

    delay = delay > r->retry_after_ms ? delay : r->retry_after_ms;
    m->problem_count += !soon;
    if (!same_again(m, r, generation, mono_ms)) {
        m->problem_since_ms = mono_ms;
        m->problem_code = r->err.code;
        snprintf(m->problem_name, sizeof(m->problem_name), "%s", r->problem.name);
        snprintf(m->problem_message, sizeof(m->problem_message), "%s", r->problem.message);
    }
    m->problem_generation = generation;
    m->problem = r->problem;
    m->problem.name = m->problem_name;
    m->problem.message = m->problem_message;
    m->problem.retry_ms = mono_ms + delay;
}

/* True: the status has to report a problem. A create that failed once, and quickly, is only retried; so is
 * one that waits for a deletion, unless that takes too long. */
static bool record_problem(struct jobmemory *m, const struct actions_result *r,
                           const struct jobmemory_pass *pass, int64_t mono_ms)
{
    bool failed = r->problem.kind == PROBLEM_FAILED;

    m->waits = r->wait ? m->waits + 1 : 0;
    if (r->ok && !pass->plan->creates_wait && mono_ms >= m->problem.retry_ms) {
        m->problem = (struct plan_problem){0};
        m->create_failed = false;
    }
    if (m->problem.kind == PROBLEM_NONE || (failed && r->pods_created > 0))
        m->problem_count = 0;
    m->create_failed &= r->pods_created == 0;
    if (r->problem.kind == PROBLEM_NONE || (r->wait && m->waits < WAITS_MAX))
        return false;
    bool reported = !failed || m->problem.kind != PROBLEM_NONE || m->create_failed || pass->took_ms > SLOW_MS;
    m->create_failed = failed;
    if (reported)
        store_problem(m, r, pass->generation, mono_ms);
    return reported;
}

/* All events of a job share the recorder's limit, one in 5 minutes after 25 (kube/correlator.h). */
int jobmemory_refused(const struct jobmemory *m, int64_t job_generation, int64_t mono_ms)
{
    bool known = m->refused_generation == job_generation && mono_ms < m->refused_ms + PROBLEM_MESSAGE_MS;

    return known ? m->refused : 0;
}

static void record_refused(struct jobmemory *m, const struct actions_result *r, int64_t generation,
                           int64_t mono_ms)
{
    if (!r->refused)
        return;
    m->refused = r->refused;
    m->refused_generation = generation;
    m->refused_ms = mono_ms;
}

/* Returns whether the write changed nothing: the API server drops fields that an older CRD lacks. */
static bool record_status(struct jobmemory *m, const struct actions_result *r,
                          const struct jobmemory_pass *pass, int64_t wall_ms, int64_t mono_ms)
{
    const char *version = r->versions[CHILD_JOB];
    bool write_dropped = version[0] && strcmp(pass->version, version) == 0;

    if (pass->plan->progressed) {
        m->progress.written_ms = wall_ms;
        m->progress.write_dropped = write_dropped;
    }
    if (!pass->plan->progress_only)
        m->status_written_ms = mono_ms + (write_dropped ? IN_VAIN_MS : 0);
    snprintf(m->unreadable_reported, sizeof(m->unreadable_reported), "%s",
             pass->plan->unreadable ? version : "");
    return write_dropped;
}

bool jobmemory_record(struct jobmemory *m, const struct watches *w, const struct actions_result *r,
                      const struct jobmemory_pass *pass, int64_t wall_ms, int64_t mono_ms)
{
    record_versions(m, w, r);
    record_webhook(m, r, mono_ms);
    record_doubt(m, w, r, pass, mono_ms);
    bool write_dropped = r->status_written && record_status(m, r, pass, wall_ms, mono_ms);
    m->unseen = r->unseen || write_dropped ? m->unseen + 1 : 0;
    if (r->ok && pass->plan->slow_rank)
        m->progress.slow_reported_ms = wall_ms;
    if (r->ignored)
        m->ignored_generation = pass->generation;
    record_refused(m, r, pass->generation, mono_ms);
    if (pass->plan->pods_first)
        m->status_written_ms = mono_ms;
    return record_problem(m, r, pass, mono_ms);
}

/* After a change of the spec, try without waiting. */
struct plan_problem jobmemory_problem(const struct jobmemory *m, int64_t job_generation)
{
    return job_generation == m->problem_generation ? m->problem : (struct plan_problem){0};
}
