/* jobmemory.c - remember own writes, doubts and problems of one job between passes. */
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
    PROBLEM_WORDS_MS = 600000,
    SLOW_MS = 1000,
    WAITS_MAX = 60,
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

/* ---- what the caches have to show */

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

/* A version that falls, as after a restore of etcd, is passed by a list. */
static void learn_versions(struct jobmemory *m, const struct watches *w, const struct actions_result *r)
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

static void learn_doubt(struct jobmemory *m, const struct watches *w, const struct actions_result *r,
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
/* The server's words change from try to try (times, counts): the first ones are kept for a while, so that a try that meets
 * the same again costs no write of the status. */
static bool same_again(const struct jobmemory *m, const struct actions_result *r, int64_t generation,
                       int64_t mono_ms)
{
    return m->problem.kind == r->problem.kind && m->problem_code == r->err.code &&
           m->problem_generation == generation && strcmp(m->problem_name, r->problem.name) == 0 &&
           mono_ms < m->problem_said_ms + PROBLEM_WORDS_MS;
}

static void keep_problem(struct jobmemory *m, const struct actions_result *r, int64_t generation,
                         int64_t mono_ms)
{
    int64_t delay = backoff_delay_ms(PROBLEM_DELAY_MS, PROBLEM_DELAY_MAX_MS, m->problem_count);

    delay = delay > r->retry_after_ms ? delay : r->retry_after_ms;
    m->problem_count++;
    if (!same_again(m, r, generation, mono_ms)) {
        m->problem_said_ms = mono_ms;
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

/* True: there is one to be told. A create that failed once, and quickly, is just tried again; so is one that waits for
 * something to go, unless that takes too long. */
static bool learn_problem(struct jobmemory *m, const struct actions_result *r,
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
    bool told = !failed || m->problem.kind != PROBLEM_NONE || m->create_failed || pass->took_ms > SLOW_MS;
    m->create_failed = failed;
    if (told)
        keep_problem(m, r, pass->generation, mono_ms);
    return told;
}

/* Whether it was in vain: the API server drops a field that its schema lacks, as an older CRD's does. */
static bool learn_status(struct jobmemory *m, const struct actions_result *r,
                         const struct jobmemory_pass *pass, int64_t wall_ms, int64_t mono_ms)
{
    const char *version = r->versions[CHILD_JOB];
    bool in_vain = version[0] && strcmp(pass->version, version) == 0;

    if (pass->plan->progressed) {
        m->progress.written_ms = wall_ms;
        m->progress.in_vain = in_vain;
    }
    if (!pass->plan->progress_only)
        m->status_written_ms = mono_ms + (in_vain ? IN_VAIN_MS : 0);
    snprintf(m->unreadable_told, sizeof(m->unreadable_told), "%s", pass->plan->unreadable ? version : "");
    return in_vain;
}

bool jobmemory_learn(struct jobmemory *m, const struct watches *w, const struct actions_result *r,
                     const struct jobmemory_pass *pass, int64_t wall_ms, int64_t mono_ms)
{
    learn_versions(m, w, r);
    learn_doubt(m, w, r, pass, mono_ms);
    bool in_vain = r->status_written && learn_status(m, r, pass, wall_ms, mono_ms);
    m->unseen = r->unseen || in_vain ? m->unseen + 1 : 0;
    if (r->ok && pass->plan->slow_rank)
        m->progress.slow_told_ms = wall_ms;
    if (r->ignored)
        m->ignored_generation = pass->generation;
    if (pass->plan->pods_first)
        m->status_written_ms = mono_ms;
    return learn_problem(m, r, pass, mono_ms);
}

/* A changed spec is a new try: at once. */
struct plan_problem jobmemory_problem(const struct jobmemory *m, int64_t job_generation)
{
    return job_generation == m->problem_generation ? m->problem : (struct plan_problem){0};
}
