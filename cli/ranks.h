/* ranks.h - which pod of a job has which ranks, for --rank of `kubectl ptj logs` and `debug`. Pure.
 *
 * Errors:    ERR_INVALID naming the text and what was expected.
 */
#ifndef TK_CLI_RANKS_H
#define TK_CLI_RANKS_H

#include "common/cleanup.h"
#include "common/err.h"
#include "operator/api/trainjob.h"

enum { RANKS_RANGES_MAX = 64, RANKS_RANK_MAX = 1 << 20 };

struct ranks {
    struct {
        int64_t first, last;
    } ranges[RANKS_RANGES_MAX];
    int n;           /* 0: all ranks */
    const char *pod; /* of this pod only, "j-node-3" or "node-3"; NULL: of all */
};

/* How many ranks each pod of this replicaSpec has: processes of torchrun, and one without it and in debug mode. 0: only the pod knows
 * ("cpu", or "gpu" and "auto" where its limits name no GPU). */
int64_t ranks_per_pod(const struct trainjob_spec *spec, const struct replica_spec *r);

/* "0", "0,2,5-7". */
int ranks_parse(const char *text, struct ranks *ret, struct err *err) MUST_CHECK;

/* Whether some of the ranks run in this pod: the i-th pod (from 0) in the order of replicaSpecs and indices, has ranks i * n to
 * i * n + n - 1, n being ranks_per_pod, or 1 where only the pod knows it. */
bool ranks_have_pod(const struct ranks *r, const struct trainjob *job, const char *type, int32_t index);

/* The number of pods that are wanted. */
int ranks_count_pods(const struct ranks *r, const struct trainjob *job);

/* ERR_INVALID unless the pods have their ranks in that order. Where nodes get their ranks in a rendezvous, only the operator's
 * launcher keeps to it, in pods that have their position in CONTRACT_ENV_NODE_ORDER. `pod` is an object; NULL: not known yet. */
int ranks_check_order(const struct trainjob_spec *spec, const cJSON *pod, struct err *err) MUST_CHECK;

#endif
