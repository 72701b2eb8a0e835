/* board.h - the jobs that `kubectl ptj watch` shows: of each the newest status, the losses seen, and its last event. Pure.
 *
 * Ownership: objects are borrowed for the call. A board owns its jobs; board_release frees them. Texts of others are made
 *            safe to print (cli/shown.h) and cut when they are taken in.
 * Units:     milliseconds since the Unix epoch; 0: not set.
 * Order:     board_list_begin, board_put for each job, board_list_end: jobs that were not named are gone then.
 */
#ifndef TK_CLI_WATCH_BOARD_H
#define TK_CLI_WATCH_BOARD_H

#include "kube/store.h"
#include "operator/api/decode.h"
#include "operator/api/jobstatus.h"

enum {
    BOARD_LOSSES = 32, /* the newest ones are kept */
    BOARD_JOBS_MAX = 20000,
    BOARD_READY_BYTES = 16,
    BOARD_REASON_BYTES = 80,
    BOARD_TEXT_BYTES = 200,
};

struct board_job {
    char ns[DECODE_LABEL_BYTES + 1], name[DECODE_NAME_BYTES + 1], uid[DECODE_UID_BYTES + 1];
    bool listed; /* else only an event was seen */
    enum job_phase phase;
    char ready[BOARD_READY_BYTES]; /* "2/2", "-" */
    char reason[BOARD_REASON_BYTES];
    char failure[BOARD_TEXT_BYTES]; /* of the last failure: "rank 3 on a: exit code 2: ..."; "": none */
    int32_t exit_code;              /* of the last failure; -1: not known */
    int32_t restarts;
    int64_t created_ms, completion_ms;
    struct jobprogress progress;
    double losses[BOARD_LOSSES]; /* oldest first */
    int n_losses;
    struct {
        int64_t time_ms;
        bool warning;
        char text[BOARD_TEXT_BYTES]; /* "Reason: message" */
    } event;
    /* What the last line about it had (changes.h, record.h). */
    struct {
        bool begun;
        uint64_t hash;
        enum job_phase phase;
        int32_t restarts;
        char reason[BOARD_REASON_BYTES]; /* its first word */
        int64_t percent, progress_ms;
    } printed;
};

struct board {
    struct kube_store *jobs; /* by namespace and name; values are struct board_job */
};

void board_init(struct board *b);
void board_release(struct board *b);

void board_list_begin(struct board *b);
/* Returns how many jobs are gone; `gone` (may be NULL) is called with each. */
size_t board_list_end(struct board *b, void (*gone)(void *ctx, const struct board_job *j), void *ctx);

/* Take in a job as it is now. NULL: the object has no usable names, or there are BOARD_JOBS_MAX already. */
struct board_job *board_put(struct board *b, const cJSON *object);

/* NULL: it is not there. The job is valid until the next change of the board. */
struct board_job *board_find(const struct board *b, const char *ns, const char *name);
void board_remove(struct board *b, const char *ns, const char *name);

/* Take in an event about a job; older ones than the one that is known, and those about other kinds, are ignored. */
void board_event(struct board *b, const cJSON *event);

/* All listed jobs, in the order in which people look at them: running, coming, paused, failed, succeeded; in each by
 * namespace and name, and those that have ended with the newest first. Free with free(). */
struct board_job **board_sorted(const struct board *b, size_t *ret_n);

#endif
