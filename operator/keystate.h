/* keystate.h - what the controller remembers of one job between two passes. It saves requests and writes;
 * results would be right without it.
 */
#ifndef TK_OPERATOR_KEYSTATE_H
#define TK_OPERATOR_KEYSTATE_H

#include "operator/step.h"
#include "operator/watches.h"

struct keystate {
    char uid[APPLY_UID_BYTES];
    const void *pass; /* under way; what another one brings was learned of a job that went away meanwhile */
    struct expectation *expected; /* what the cache must show after the last pass that wrote; heap */
    int n_expected;
    char status_version[APPLY_VERSION_BYTES]; /* the job must be as new as this; "": no condition */
    int64_t expected_until_ms;                /* monotonic; from then on it is planned in any case */
    int expired;                              /* waits in a row that ended by this time */
    /* Read the job live before planning: the last pass met a 404 for it, or did not learn its version. */
    bool read_first;
    char live_version[APPLY_VERSION_BYTES]; /* version at which the job was read live */
    char refused_version
        [APPLY_VERSION_BYTES]; /* a status of it was refused: not believed any more. "": none */
    bool status_tried;         /* this process sent a status, with any result */
    /* This process wrote the status or read the job live, so that older versions in the cache are
     * recognised. */
    bool confirmed;
    char (*gone_uids)[APPLY_UID_BYTES]; /* pods that a live GET did not find; heap */
    int n_gone_uids;
    struct plan_problem
        problem; /* its time is monotonic; its strings are the next two fields; kind PROBLEM_NONE: none */
    char problem_name[64];
    char problem_message[ERR_MSG_BYTES];
    int problem_code;        /* HTTP status */
    int64_t problem_said_ms; /* monotonic: when problem_message was set */
    int64_t problem_generation;
    int64_t ignored_generation; /* of the spec of which fields were ignored, and that was told; 0: none */
    int problem_count;          /* consecutive problems */
    bool create_failed;         /* a create failed once, and quickly: not reported yet */
    int waits;                  /* consecutive passes that waited for an object to be deleted */
    /* The last pass had no room in the budget for need_bytes; 0: it had. It planned this generation, with
     * need_create bytes for bodies of pods. */
    size_t need_bytes, need_create;
    int64_t need_generation;
    int64_t status_written_ms; /* monotonic; creating the first pods of a new job counts, too */
    int64_t rest_until_ms;     /* monotonic; it is not planned sooner */
    struct plan_seen seen;
    int64_t put_off_ms; /* monotonic: since when actions that may wait are put off; 0: they are not */
    struct plan_progress progress; /* its times are wall */
    struct jobprogress shown;      /* what the status said of it when it was planned last */
    bool unreadable_told;          /* the last status written reports something unreadable */
};

struct keystate *keystate_new(const char *uid);
void keystate_free(void *state);

/* Whether the cache, with the job at this resourceVersion, shows what the last pass wrote. */
bool keystate_visible(const struct keystate *k, const struct watches *w, const char *job_version);

/* Report whether the wait for the cache was in vain: then the next one is twice as long, up to a minute. */
void keystate_expired(struct keystate *k, bool in_vain);

/* Whether the job at this version is older than the status that this process wrote. */
bool keystate_job_is_old(const struct keystate *k, const char *job_version);

/* A pass that has ended. */
struct keystate_pass {
    int64_t generation; /* of the spec that was planned, which may have changed since */
    int n_gone_used;
    int64_t took_ms;
    const char *version; /* of the job that was planned; NULL: not known */
    bool pods_first;
    bool progressed, progress_only, slow_rank;
    bool creates_wait;
};

/* Remember what a pass wrote and met. True: it met a problem that the status has to report, so plan again at
 * once; the create that failed is not tried again before plan_problem.retry_ms. */
bool keystate_learn(struct keystate *k, const struct apply_result *r, const struct keystate_pass *pass,
                    int64_t wall_ms, int64_t mono_ms);

struct plan_problem keystate_problem(const struct keystate *k, int64_t job_generation);

#endif
