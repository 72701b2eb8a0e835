/* keystate.h - what the controller remembers of one job between two passes; nothing of it is needed to be
 * right. */
#ifndef TK_OPERATOR_KEYSTATE_H
#define TK_OPERATOR_KEYSTATE_H

#include "operator/step.h"
#include "operator/watches.h"

struct keystate {
    char uid[APPLY_UID_BYTES];
    struct expectation *expected; /* of the last pass that wrote; heap */
    int n_expected;
    char status_version[APPLY_VERSION_BYTES]; /* the job must be as new as this; "" for no matter */
    int64_t expected_until_ms;                /* monotonic; then it is planned anyway */
    int expired;                              /* waits in a row that ended so */
    bool
        read_first; /* the last pass met a 404 for the job, or no version of it: it is read live before anything else */
    char live_version[APPLY_VERSION_BYTES]; /* the job was read live at this version */
    bool status_tried;                      /* this process sent a status, whatever came of it */
    bool confirmed; /* this process wrote the status, or read the job live: the cache is held against that */
    char (*gone_uids)[APPLY_UID_BYTES]; /* heap */
    int n_gone_uids;
    struct plan_problem problem; /* its strings are the two below; kind NONE: none */
    char problem_name[64];
    char problem_message[ERR_MSG_BYTES];
    int problem_code;        /* HTTP status */
    int64_t problem_said_ms; /* wall: since when these words */
    int64_t problem_generation;
    int problem_count;  /* in a row */
    bool create_failed; /* once, and quickly: not told yet */
    int waits;          /* in a row, for something that has to go first */
    /* The last pass was put off for want of need_bytes; 0: it was not. It was of this generation, and might make need_create
     * bytes of pods. */
    size_t need_bytes, need_create;
    int64_t need_generation;
    int64_t status_written_ms; /* wall; the first pods of a new job count as one */
    int64_t put_off_ms;        /* monotonic: since when what may wait was not done; 0: it was */
    bool unreadable_told;      /* the last status written says that something cannot be read */
};

struct keystate *keystate_new(const char *uid);
void keystate_free(void *state);

/* The cache, with the job at this resourceVersion, shows what the last pass wrote. */
bool keystate_visible(const struct keystate *k, const struct watches *w, const char *job_version);

/* It was waited for in vain: the next wait is twice as long, up to a minute. */
void keystate_expired(struct keystate *k, bool in_vain);

/* The job itself is older than the status we wrote. */
bool keystate_job_is_old(const struct keystate *k, const char *job_version);

/* A pass that ended. */
struct keystate_pass {
    int64_t generation; /* of the spec that it planned, which may have changed since */
    int n_gone_used;
    int64_t took_ms;
    const char *version; /* of the job that it planned; NULL: not known */
    bool pods_first;
};

/* Remember what a pass wrote and met. True: it met a problem that has to be told in the status, so plan again at once; what
 * failed is not tried again before its time. */
bool keystate_learn(struct keystate *k, const struct apply_result *r, const struct keystate_pass *pass,
                    int64_t wall_ms, int64_t mono_ms);

struct plan_problem keystate_problem(const struct keystate *k, int64_t job_generation);

#endif
