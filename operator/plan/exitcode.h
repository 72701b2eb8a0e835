/* exitcode.h - classify how one pod ended: success, disruption (evicted, preempted, drained, deleted), out of
 * memory, signal, retryable or permanent exit code. Pure. restart.h decides what happens to the job.
 *
 * Ownership: strings of a verdict are literals or borrowed from the pod.
 */
#ifndef TK_OPERATOR_PLAN_EXITCODE_H
#define TK_OPERATOR_PLAN_EXITCODE_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

/* From weak to strong evidence: the strongest verdict of an attempt decides. */
enum verdict_class {
    VERDICT_NONE, /* not ended */
    VERDICT_SUCCESS,
    VERDICT_PEER_LOST,
    VERDICT_PERMANENT,
    VERDICT_RETRYABLE,
    VERDICT_KILL,
    VERDICT_OOM,
    VERDICT_ADMISSION,
    VERDICT_DISRUPTION,
    /* By a rule of podFailurePolicy (judge.c), or after --gang-start-deadline. restartPolicy does not
     * change them. */
    VERDICT_UNCOUNTED, /* it restarts, and no counter of failures changes */
    VERDICT_COUNTED,   /* it counts against backoffLimit */
    VERDICT_FAIL_JOB,
};

struct verdict {
    enum verdict_class class;
    const char *reason;  /* CamelCase */
    const char *message; /* "" for none */
    const char *init;    /* the init container that failed; NULL: none */
    const char *rule;    /* VERDICT_FAIL_JOB: which rule matches what */
    int32_t exit_code;   /* -1: no container terminated */
    int32_t signal;      /* 0: none */
    int32_t rank;        /* -1: not known */
    int64_t finished_ms; /* 0: not known */
};

struct verdict exitcode_verdict(const struct pod *pod, const struct run_policy *policy);

/* The verdict on a pod that disappeared without the operator deleting it. exit_code: from the status, or -1. */
struct verdict exitcode_lost(int32_t exit_code, const struct run_policy *policy);

/* The verdict on a pod that still seems to run, whose peers lost it and whose node does not report. */
struct verdict exitcode_node_lost(void);

/* Whether a recorded failure with this reason was a disruption: a restart after one is not delayed. */
bool exitcode_is_disruption(const char *reason);

/* Whether the node may be the cause of a recorded failure with this reason; DESIGN.md has the table. exit_code -1:
 * no container terminated. */
bool exitcode_accuses_node(const char *reason, int32_t exit_code);

#endif
