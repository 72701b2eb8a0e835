/* jobmemory.h - what the controller remembers of one job between two passes, within one term of leadership.
 *
 * Ownership: the term's store (controller.c) owns each jobmemory, by job UID. It frees it with jobmemory_free when
 *            the job is gone or the term ends. jobmemory_free sets *holder to NULL: a pass under way then knows that
 *            its job is gone.
 * Units:     monotonic milliseconds; `progress`, `seen` and `shown` are Unix time.
 */
#ifndef TK_OPERATOR_JOBMEMORY_H
#define TK_OPERATOR_JOBMEMORY_H

#include "operator/actions.h"
#include "operator/watches.h"

/* What a cache has to show: this version or a later one, or a list that was begun after the first `lists` of its kind. */
struct jobmemory_mark {
    char version[ACTIONS_VERSION_BYTES]; /* "": nothing */
    uint64_t lists;
};

/* A cache that does not show it yet. */
struct jobmemory_late {
    int64_t since_ms; /* or since this job last had the kind listed anew; 0: it is not late */
    int lists;        /* that this job asked for */
};

struct jobmemory {
    struct jobmemory **holder;                  /* of the pass under way; NULL: none is */
    struct jobmemory_mark written[CHILD_KINDS]; /* the highest version of an own write, by enum child_kind */
    struct jobmemory_mark
        doubt;              /* the job's version that may not be the present one: see actions_result.doubt */
    int doubts;             /* of this version, in a row */
    int64_t doubt_until_ms; /* the job is not planned sooner from that version */
    bool lost;              /* an answer was lost, and no status was written since */
    struct jobmemory_late late[CHILD_KINDS]; /* by enum child_kind */
    int64_t tb_unseen_ms; /* since when the Deployment of its TensorBoard cannot be seen; 0: it can */
    int unseen; /* passes in a row that met actions_result.unseen, or whose status write changed nothing */
    struct plan_problem problem; /* its strings are the next two fields; kind PROBLEM_NONE: none */
    char problem_name[128];
    char problem_message[ERR_MSG_BYTES];
    int problem_code;        /* HTTP status */
    int64_t problem_said_ms; /* when problem_message was set */
    int64_t problem_generation;
    int64_t ignored_generation; /* of the spec of which fields were ignored, and that was told; 0: none */
    int problem_count;          /* consecutive problems */
    bool create_failed;         /* a create failed once, and quickly: not reported yet */
    int waits;                  /* consecutive passes that waited for an object to be deleted */
    /* The last pass had no room in the budget for need_bytes; 0: it had. It planned this generation, with
     * need_create bytes for bodies of pods. */
    size_t need_bytes, need_create;
    int64_t need_generation;
    int64_t status_written_ms; /* creating the first pods of a new job counts, too */
    int64_t rest_until_ms;     /* the job is not planned sooner: its last plan took long */
    struct plan_seen seen;
    int64_t put_off_ms;            /* since when actions that may wait are put off; 0: they are not */
    struct plan_progress progress; /* its times are Unix time */
    struct jobprogress shown;      /* what the status said of it when it was planned last */
    char unreadable_told
        [ACTIONS_VERSION_BYTES]; /* the job's, once a status reported something unreadable; "": none did */
};

struct jobmemory *jobmemory_new(void);
void jobmemory_free(void *memory);

/* True: the cache shows the last write of this kind. Then the mark is cleared. Without a mark always true. */
bool jobmemory_is_shown(struct jobmemory *m, const struct watches *w, enum child_kind kind);

/* Whether the job may be at another version than this one, which the cache shows. */
bool jobmemory_doubts(const struct jobmemory *m, const struct watches *w, const char *job_version);

/* For how long the job is not planned from this version, since a write from it was refused or lost; 0: it may be planned. */
int64_t jobmemory_rest_ms(const struct jobmemory *m, const char *job_version, int64_t now_ms);

/* late: the cache of this kind does not show what it has to. True: that has lasted so long (5 s, then twice as long each time,
 * up to a minute) that the kind is to be listed anew. */
bool jobmemory_is_overdue(struct jobmemory *m, enum child_kind kind, bool late, int64_t now_ms);

/* A pass that has ended. */
struct jobmemory_pass {
    const struct plan *plan;
    const char *version; /* of the job that was planned, and of its spec: */
    int64_t generation;
    int64_t took_ms;
};

/* Remember what a pass wrote and met. True: it met a problem that the status has to report, so plan again at
 * once; the create that failed is not tried again before plan_problem.retry_ms. */
bool jobmemory_learn(struct jobmemory *m, const struct watches *w, const struct actions_result *r,
                     const struct jobmemory_pass *pass, int64_t wall_ms, int64_t mono_ms);

struct plan_problem jobmemory_problem(const struct jobmemory *m, int64_t job_generation);

#endif
