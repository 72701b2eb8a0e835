/* exitcode.h - what the end of one pod means: the order of evidence of the contract. Pure.
 *
 * Ownership: strings of a verdict are literals or borrowed from the pod.
 */
#ifndef TK_OPERATOR_PLAN_EXITCODE_H
#define TK_OPERATOR_PLAN_EXITCODE_H

#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

/* From the weakest evidence to the strongest: an attempt is judged by its strongest. */
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
};

struct verdict {
    enum verdict_class class;
    const char *reason;  /* CamelCase */
    const char *message; /* "" when nothing was said */
    const char *init;    /* the init container that failed; NULL: none did */
    int32_t exit_code;   /* -1: no container ended */
    int32_t signal;      /* 0: none */
    int32_t rank;        /* -1: not known */
    int64_t finished_ms; /* 0: not known */
};

struct verdict exitcode_verdict(const struct pod *pod, const struct run_policy *policy);

/* A pod that went without our doing; exit_code -1, or what the status remembers of its end. */
struct verdict exitcode_lost(int32_t exit_code, const struct run_policy *policy);

/* Whether a recorded failure of this reason was a disruption: those are not delayed. */
bool exitcode_is_disruption(const char *reason);

#endif
