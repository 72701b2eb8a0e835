/* jobmemory.h - the controller's memory of one job between two reconciles, within one term of leadership.
 *
 * Ownership: the term's store (controller.c) owns each jobmemory, by job UID. It frees it with jobmemory_free
 *            when the job is gone or the term ends. jobmemory_free sets *holder to NULL: a reconcile in
 *            progress sees by that that its job is gone.
 * Units:     monotonic milliseconds; `progress`, `seen` and `shown` are Unix time.
 */
#ifndef TK_OPERATOR_JOBMEMORY_H
#define TK_OPERATOR_JOBMEMORY_H

#include "operator/actions.h"
#include "operator/watches.h"

/* What a cache has to include: this version or a later one, or a list begun after the first `lists` of its
 * kind. */
struct jobmemory_mark {
    char version[ACTIONS_VERSION_BYTES]; /* "": nothing */
    uint64_t lists;
};

/* A cache that does not include it yet. */
struct jobmemory_late {
    int64_t since_ms; /* or since this job last requested a new list of the kind; 0: not late */
    int lists;        /* that this job requested */
};

struct jobmemory {
    struct jobmemory **holder;                  /* of the reconcile in progress; NULL: none */
    struct jobmemory_mark written[CHILD_KINDS]; /* the highest version of our writes, by enum child_kind */
    struct jobmemory_mark doubt; /* the job's version that may be out of date: see actions_result.doubt */
    int doubts;                  /* consecutive doubts of this version */
    int64_t doubt_until_ms;      /* do not plan the job from that version before this time */
    bool lost;                   /* a write got no answer, and no status was written since */
    struct jobmemory_late late[CHILD_KINDS]; /* by enum child_kind */
    int64_t tb_unseen_since_ms; /* since when the cache of Deployments is incomplete or late; 0: it is not */
    int unseen; /* consecutive reconciles with actions_result.unseen, or whose status write changed nothing */
    struct plan_problem problem; /* its strings are the next two fields; kind PROBLEM_NONE: none */
    char problem_name[128];
    char problem_message[ERR_MSG_BYTES];
    int problem_code;         /* HTTP status */
    int64_t problem_since_ms; /* when problem_message was set */
    int64_t problem_generation;
    int64_t ignored_generation; /* the spec generation whose ignored fields were reported; 0: none */
    int refused;                /* the HTTP status in the last event WriteRefused, of this spec and time: */
    int64_t refused_generation, refused_ms;
    int problem_count;        /* consecutive problems */
    int64_t webhook_since_ms; /* since when a webhook could not be called; 0: that is over */
    bool create_failed;       /* a create failed once, and quickly: the status does not report it yet */
    int waits;                /* consecutive reconciles that waited for an object to be deleted */
    /* The last plan did not fit into the budget: it needed need_bytes (0: it fitted), for this generation and
     * with need_create bytes for bodies of pods. */
    size_t need_bytes, need_create;
    int64_t need_generation;
    int64_t status_written_ms; /* also set when the first pods of a new job are created */
    int64_t rest_until_ms;     /* do not plan the job before this time: its last plan took long */
    struct plan_seen seen;
    int place; /* queue_shown_place, found at place_ms; 0: not known */
    int64_t place_ms;
    int64_t postponed_ms;          /* since when actions that may wait are postponed; 0: they are not */
    struct plan_progress progress; /* its times are Unix time */
    struct jobprogress shown;      /* the progress in the status at the last plan */
    /* The job's version after a status that reported an unreadable object; "": none. */
    char unreadable_reported[ACTIONS_VERSION_BYTES];
};

struct jobmemory *jobmemory_new(void);
void jobmemory_free(void *memory);

/* Whether the cache includes the last write of this kind; if so it clears the mark. Without a mark always
 * true. */
bool jobmemory_is_shown(struct jobmemory *m, const struct watches *w, enum child_kind kind);

/* Whether the job may be at another version than this one, the cached one. */
bool jobmemory_doubts(const struct jobmemory *m, const struct watches *w, const char *job_version);

/* How long not to plan the job from this version, since a write from it was refused or lost; 0: it may be
 * planned. */
int64_t jobmemory_rest_ms(const struct jobmemory *m, const char *job_version, int64_t now_ms);

/* late: the cache of this kind does not include what it has to. Returns true when that has lasted so long (5
 * s, doubling up to a minute) that the kind has to be listed again. */
bool jobmemory_is_overdue(struct jobmemory *m, enum child_kind kind, bool late, int64_t now_ms);

/* A reconcile that has ended. */
struct jobmemory_pass {
    const struct plan *plan;
    const char *version; /* of the planned job, and the generation of its spec: */
    int64_t generation;
    int64_t took_ms;
};

/* Record the writes and problems of a reconcile. True: the status has to report a problem, so plan again
 * without waiting; the failed create is not retried before plan_problem.retry_ms. */
bool jobmemory_record(struct jobmemory *m, const struct watches *w, const struct actions_result *r,
                      const struct jobmemory_pass *pass, int64_t wall_ms, int64_t mono_ms);

/* How long to wait after the API server could not call a webhook: 1 s during the first minute, since webhooks of a
 * queueing system are down while that is restarted. -1: that is not the problem. */
int64_t jobmemory_webhook_ms(const struct jobmemory *m, int64_t mono_ms);

/* The HTTP status that an event WriteRefused need not report again yet; 0: none. */
int jobmemory_refused(const struct jobmemory *m, int64_t job_generation, int64_t mono_ms);

struct plan_problem jobmemory_problem(const struct jobmemory *m, int64_t job_generation);

#endif
