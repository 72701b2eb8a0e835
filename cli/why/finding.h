/* finding.h - what `kubectl ptj why` knows of a job, and the one thing in it that keeps the job from going on. Pure.
 *
 * Ownership: everything in the facts is borrowed; a finding borrows from them and lives in the arena.
 * Units:     milliseconds since the Unix epoch.
 */
#ifndef TK_CLI_WHY_FINDING_H
#define TK_CLI_WHY_FINDING_H

#include "common/arena.h"
#include "common/err.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

#include <string.h>

enum { WHY_GAPS_MAX = 8, WHY_LOG_LINES = 400, WHY_LOG_BYTES = 1 << 20 };

struct why_facts {
    const struct trainjob *job;
    /* Arrays of objects as the API server gives them; NULL: not read. */
    cJSON *pods, *events, *claims, *nodes, *budgets;
    const cJSON *pending; /* the job's item of Kueue's visibility API; NULL: not read */
    const char *log;      /* the last lines of the log of the pod that the finding names; NULL: not read */
    /* What could not be read, a sentence each. */
    char gaps[WHY_GAPS_MAX][ERR_MSG_BYTES];
    int n_gaps;
    int64_t now_ms;
    const char *options; /* kubectl's that the user gave, for commands: " --context=c"; "" */
};

enum why_kind {
    WHY_HEALTHY, /* nothing is wrong: it runs, has succeeded, is paused, or just starts */
    WHY_JOB,     /* the job as a whole */
    WHY_REFUSED, /* the API server refuses its pods */
    WHY_WAITING, /* a pod does not start */
    WHY_FAILURE, /* a pod failed */
};

struct finding {
    enum why_kind kind;
    const char *reason;  /* CamelCase, as in status.reason, lastFailure.reason or a container's state */
    const char *message; /* the words of the server or of the program; "" for none */
    const char *text;    /* all that the cause may stand in: the message, the pod's events, the log */
    /* Of a failure: what the programs wrote into the log, and the line of it or of the message that names the error. */
    const char *log, *line;
    const char *pod, *uid, *node, *container; /* NULL: none */
    bool init;                                /* the container is an init container */
    int32_t rank, exit_code, signal, attempt; /* -1; signal 0: not known */
    int64_t since_ms;                         /* 0: not known */
    int others;                               /* so many other pods wait for the same reason */
    bool judged;                              /* the operator's status has this failure */
};

extern const struct finding FINDING_NONE; /* WHY_HEALTHY, and nothing known */

/* Both are there and equal. */
static inline bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

struct finding finding_of(const struct why_facts *f, struct arena *a);

/* The same of one pod, `object` as the API server gives it. WHY_HEALTHY: it just starts or runs, or is not one of the job's present
 * attempt. */
struct finding finding_of_pod(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                              struct arena *a);

/* Why a pod does not start, or does not go on (podwait.c). `object` is the pod as the API server gives it. WHY_HEALTHY: it just starts,
 * or runs. */
struct finding podwait_of(const struct why_facts *f, const struct pod *pod, const cJSON *object,
                          struct arena *a);

/* Message, beginning so, of the newest event of this reason about the finding's pod and, where both say one, its container. NULL:
 * there is none. */
const char *podwait_event(const struct why_facts *f, const struct finding *g, const char *reason,
                          const char *begins);

/* The last n lines. */
const char *finding_tail(const char *text, int n);

/* The object of this name in a list; NULL: it is not there. */
const cJSON *finding_object(const cJSON *list, const char *name);

#endif
