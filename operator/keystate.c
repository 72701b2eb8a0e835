/* keystate.c - remember own writes, problems and checks of one job between passes. */
#include "operator/keystate.h"

#include "common/backoff.h"
#include "common/memory.h"
#include "kube/version.h"

#include <stdlib.h>
#include <string.h>

enum {
    VISIBLE_WAIT_MS = 5000,
    VISIBLE_WAIT_MAX_MS = 60000,
    EXPIRED_MAX = 8,
    PROBLEM_DELAY_MS = 1000,
    PROBLEM_DELAY_MAX_MS = 60000,
    IN_VAIN_MS = 300000,
    PROBLEM_WORDS_MS = 600000,
    SLOW_MS = 1000,
    WAITS_MAX = 60,
    GONE_MAX = TRAINJOB_PODS_MAX,
};

struct keystate *keystate_new(const char *uid)
{
    struct keystate *k = memory_must(calloc(1, sizeof(*k)));

    snprintf(k->uid, sizeof(k->uid), "%s", uid);
    return k;
}

void keystate_free(void *state)
{
    struct keystate *k = state;

    if (!k)
        return;
    free(k->expected);
    free(k->gone_uids);
    free(k);
}

/* A version that is no number counts as old until it is the very one; the time limit ends that. */
bool keystate_job_is_old(const struct keystate *k, const char *job_version)
{
    return k->status_version[0] && strcmp(job_version, k->status_version) != 0 &&
           !version_is_newer(job_version, k->status_version);
}

static bool is_leaving(enum child_kind kind, bool by_force, const void *value)
{
    const struct pod *pod = value;

    if (kind == CHILD_POD)
        return by_force ? pod->forced : pod->deletion_ms != 0;
    return ((const struct child *)value)->deleting;
}

bool keystate_visible(const struct keystate *k, const struct watches *w, const char *job_version)
{
    if (keystate_job_is_old(k, job_version))
        return false;
    for (int i = 0; i < k->n_expected; i++) {
        const struct expectation *x = &k->expected[i];
        const struct kube_store_entry *e = kube_store_group(watches_children(w, x->child), k->uid);
        while (e && strcmp(e->uid, x->uid) != 0)
            e = kube_store_group_next(e);
        bool there = e && !is_leaving(x->child, x->removed, e->value);
        if (x->present ? e == NULL : there)
            return false;
    }
    return true;
}

void keystate_expired(struct keystate *k, bool in_vain)
{
    if (!in_vain)
        k->expired = 0;
    else if (k->expired < EXPIRED_MAX)
        k->expired++;
}

static void learn_gone(struct keystate *k, const struct apply_result *r, int n_used)
{
    if (r->status_written && n_used > 0) {
        k->n_gone_uids -= n_used;
        memmove(k->gone_uids, k->gone_uids + n_used, (size_t)k->n_gone_uids * sizeof(*k->gone_uids));
    }
    for (int i = 0; i < r->n_gone_uids && k->n_gone_uids < GONE_MAX; i++) {
        size_t bytes = ((size_t)k->n_gone_uids + 1) * sizeof(*k->gone_uids);
        k->gone_uids = memory_must(realloc(k->gone_uids, bytes));
        snprintf(k->gone_uids[k->n_gone_uids++], APPLY_UID_BYTES, "%s", r->gone_uids[i]);
    }
}

/* The server's words change from try to try (times, counts): the first ones are kept for a while, so that a try that meets
 * the same again costs no write of the status. */
static bool same_again(const struct keystate *k, const struct apply_result *r, int64_t generation,
                       int64_t mono_ms)
{
    return k->problem.kind == r->problem.kind && k->problem_code == r->err.code &&
           k->problem_generation == generation && strcmp(k->problem_name, r->problem.name) == 0 &&
           mono_ms < k->problem_said_ms + PROBLEM_WORDS_MS;
}

static void keep_problem(struct keystate *k, const struct apply_result *r, int64_t generation,
                         int64_t mono_ms)
{
    int64_t delay = backoff_delay_ms(PROBLEM_DELAY_MS, PROBLEM_DELAY_MAX_MS, k->problem_count);

    delay = delay > r->retry_after_ms ? delay : r->retry_after_ms;
    k->problem_count++;
    if (!same_again(k, r, generation, mono_ms)) {
        k->problem_said_ms = mono_ms;
        k->problem_code = r->err.code;
        snprintf(k->problem_name, sizeof(k->problem_name), "%s", r->problem.name);
        snprintf(k->problem_message, sizeof(k->problem_message), "%s", r->problem.message);
    }
    k->problem_generation = generation;
    k->problem = r->problem;
    k->problem.name = k->problem_name;
    k->problem.message = k->problem_message;
    k->problem.retry_ms = mono_ms + delay;
}

/* True: there is one to be told. A create that failed once, and quickly, is just tried again; so is one that waits for
 * something to go, unless that takes too long. */
static bool learn_problem(struct keystate *k, const struct apply_result *r, const struct keystate_pass *pass,
                          int64_t mono_ms)
{
    bool failed = r->problem.kind == PROBLEM_FAILED;

    k->waits = r->wait ? k->waits + 1 : 0;
    if (r->ok && !pass->creates_wait && mono_ms >= k->problem.retry_ms) {
        k->problem = (struct plan_problem){0};
        k->create_failed = false;
    }
    if (k->problem.kind == PROBLEM_NONE || (failed && r->pods_created > 0))
        k->problem_count = 0;
    k->create_failed &= r->pods_created == 0;
    if (r->problem.kind == PROBLEM_NONE || (r->wait && k->waits < WAITS_MAX))
        return false;
    bool told = !failed || k->problem.kind != PROBLEM_NONE || k->create_failed || pass->took_ms > SLOW_MS;
    k->create_failed = failed;
    if (told)
        keep_problem(k, r, pass->generation, mono_ms);
    return told;
}

bool keystate_learn(struct keystate *k, const struct apply_result *r, const struct keystate_pass *pass,
                    int64_t wall_ms, int64_t mono_ms)
{
    learn_gone(k, r, pass->n_gone_used);
    bool told = learn_problem(k, r, pass, mono_ms);
    k->read_first = r->read_first;
    snprintf(k->refused_version, sizeof(k->refused_version), "%s",
             r->status_refused && pass->version ? pass->version : "");
    if (r->status_written) {
        /* The API server drops a field that its schema lacks, as an older CRD's does: writing it again changes nothing. */
        bool in_vain = pass->version && r->status_version[0] && strcmp(pass->version, r->status_version) == 0;
        if (pass->progressed) {
            k->progress.written_ms = wall_ms;
            k->progress.in_vain = in_vain;
        }
        if (!pass->progress_only)
            k->status_written_ms = mono_ms + (in_vain ? IN_VAIN_MS : 0);
        k->confirmed = true;
        snprintf(k->status_version, sizeof(k->status_version), "%s", r->status_version);
    }
    if (r->ok && pass->slow_rank)
        k->progress.slow_told_ms = wall_ms;
    if (r->ignored)
        k->ignored_generation = pass->generation;
    if (pass->pods_first)
        k->status_written_ms = mono_ms;
    free(k->expected);
    k->expected = NULL;
    k->n_expected = r->n_expected;
    if (r->n_expected) {
        k->expected = memory_must(calloc((size_t)r->n_expected, sizeof(*k->expected)));
        memcpy(k->expected, r->expected, (size_t)r->n_expected * sizeof(*k->expected));
    }
    k->expected_until_ms = mono_ms + backoff_delay_ms(VISIBLE_WAIT_MS, VISIBLE_WAIT_MAX_MS, k->expired);
    return told;
}

/* A changed spec is a new try: at once. */
struct plan_problem keystate_problem(const struct keystate *k, int64_t job_generation)
{
    return job_generation == k->problem_generation ? k->problem : (struct plan_problem){0};
}
