/* keystate.h - what the controller remembers of one job between two passes; nothing of it is needed to be
 * right. */
#ifndef TK_OPERATOR_KEYSTATE_H
#define TK_OPERATOR_KEYSTATE_H

#include "operator/apply_result.h"
#include "operator/watches.h"

struct keystate {
    char uid[APPLY_UID_BYTES];
    struct expectation *expected; /* of the last pass that wrote; heap */
    int n_expected;
    char status_version[APPLY_VERSION_BYTES]; /* the job must be as new as this; "" for no matter */
    int64_t expected_until_ms;                /* monotonic; then it is planned anyway */
    int expired;                              /* waits in a row that ended so */
    bool job_missing; /* the last pass met a 404 for the job: it is read live before anything else */
    char live_version[APPLY_VERSION_BYTES]; /* the job was read live at this version */
    bool confirmed; /* this process wrote the status, or read the job live: the cache is held against that */
    char (*gone_uids)[APPLY_UID_BYTES]; /* heap */
    int n_gone_uids;
    enum problem_kind problem;
    enum child_kind problem_child;
    char problem_name[64];
    char problem_message[256];
    int64_t problem_retry_ms; /* wall */
    int64_t problem_generation;
    int problem_count;
    int64_t status_written_ms; /* wall */
};

struct keystate *keystate_new(const char *uid);
void keystate_free(void *state);

/* The cache, with the job at this resourceVersion, shows what the last pass wrote. */
bool keystate_visible(const struct keystate *k, const struct watches *w, const char *job_version);

/* It was waited for in vain: the next wait is twice as long, up to a minute. */
void keystate_expired(struct keystate *k, bool in_vain);

/* The job itself is older than the status we wrote. */
bool keystate_job_is_old(const struct keystate *k, const char *job_version);

/* Remember what a pass wrote and met; job_generation: of the spec that it planned, which may have changed since. */
void keystate_learn(struct keystate *k, const struct apply_result *r, int64_t job_generation, int n_gone_used,
                    int64_t wall_ms, int64_t mono_ms);

struct plan_problem keystate_problem(const struct keystate *k, int64_t job_generation);

#endif
