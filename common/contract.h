/* contract.h - the contract between operator, launcher and trainer: exit codes, environment variables, ports.
 *
 * The exit codes are those of the API documentation of the resource ("What ended, and what follows"): the
 * operator's restarts depend on them.
 */
#ifndef TK_COMMON_CONTRACT_H
#define TK_COMMON_CONTRACT_H

#include <string.h>

enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_ERROR = 1, /* permanent */
    EXIT_CODE_USAGE = 2, /* permanent: bad flags or configuration; a launcher does not restart it */
    /* Temporary: a rendezvous or collective timed out, or memory was exhausted. A restart may succeed. */
    EXIT_CODE_RETRYABLE = 138,
    EXIT_CODE_NO_REQUEUE = 93,   /* permanent: NVIDIA's launchers mean "do not requeue" */
    EXIT_CODE_PEER_LOST = 140,   /* another rank exited first: not the root cause */
    EXIT_CODE_INTERRUPTED = 130, /* stopped by SIGINT */
    EXIT_CODE_ABORTED = 134,     /* by SIGABRT */
    EXIT_CODE_TERMINATED = 143,  /* stopped by SIGTERM */
    EXIT_CODE_SIGNAL_BASE = 128, /* + n: killed by signal n */
};

/* The last 12 characters of the job's UID. GET /progress returns them, so that the operator can check that
 * the answer is this job's. */
static inline const char *contract_job_mark(const char *uid)
{
    const size_t len = strlen(uid);

    return len > 12 ? uid + len - 12 : uid;
}

/* Set by the operator in every training container. */
#define CONTRACT_ENV_JOB_UID "PTJ_JOB_UID" /* id of the run, the same in all attempts */
#define CONTRACT_ENV_TERMINATION_LOG                                                                         \
    "PTJ_TERMINATION_LOG" /* file to which the launcher writes why it failed, or its last progress */

/* Set by a launcher for every worker (torchrun's names). */
#define CONTRACT_ENV_RANK "RANK"
#define CONTRACT_ENV_LOCAL_RANK "LOCAL_RANK"
#define CONTRACT_ENV_WORLD_SIZE "WORLD_SIZE"
#define CONTRACT_ENV_MASTER_ADDR "MASTER_ADDR"
#define CONTRACT_ENV_MASTER_PORT "MASTER_PORT"

/* Read by our launcher, set by the operator. The launcher does not pass them on to the ranks, except ATTEMPT.
 *   PROGRESS_PORT     the port for GET /progress and /metrics; the operator sets it for node 0 only
 *   PROGRESS_TIMEOUT  the run ends as hung after this many seconds without a sign of life of any rank
 *   ATTEMPT           the number of the job's attempt, for the answer of GET /progress, and for the trainer where the launcher's
 *                     run id does not have it
 *   NODE_ORDER        this pod's index in the job, from 0: the order of node ranks with the backend c10d
 *   JOB_KEY           64 hex digits from a Secret, by which the job's nodes, and then its ranks, authenticate each other
 *                     (rendezvous/PROTOCOL.md); not set: the job has no key. The launcher wipes it from its environment
 */
#define CONTRACT_ENV_PROGRESS_PORT "TORCHKEEPER_PROGRESS_PORT"
#define CONTRACT_ENV_PROGRESS_TIMEOUT "TORCHKEEPER_PROGRESS_TIMEOUT"
#define CONTRACT_ENV_ATTEMPT "PTJ_ATTEMPT"
#define CONTRACT_ENV_NODE_ORDER "PTJ_NODE_ORDER"
#define CONTRACT_ENV_JOB_KEY "TORCHKEEPER_JOB_KEY"

/* The launcher's limit of PROGRESS_TIMEOUT: a week. */
enum { CONTRACT_PROGRESS_TIMEOUT_MIN_S = 30, CONTRACT_PROGRESS_TIMEOUT_MAX_S = 604800 };

enum { CONTRACT_MASTER_PORT = 29500, CONTRACT_RDZV_PORT = 29400, CONTRACT_PROGRESS_PORT = 29402 };

#endif
