/* rank_contract.h - the contract between a launcher and its ranks besides common/contract.h: environment
 * variables, and how the launcher stops ranks. */
#ifndef TK_HOST_RANK_CONTRACT_H
#define TK_HOST_RANK_CONTRACT_H

#include "common/contract.h"

#include <stdbool.h>
#include <sys/wait.h>

/* Whether a process with this waitpid status would end the same way again. Launchers do not restart it. */
static inline bool contract_is_final(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CODE_USAGE;
}

#define CONTRACT_ENV_LOCAL_WORLD_SIZE "LOCAL_WORLD_SIZE" /* torchrun's name, as those below */
#define CONTRACT_ENV_RUN_ID "TORCHELASTIC_RUN_ID"
#define CONTRACT_ENV_RESTART_COUNT "TORCHELASTIC_RESTART_COUNT"
/* FOLDER/attempt_N/LOCAL-RANK/error.json: the launcher creates FOLDER for this launch on this node. N counts
 * restarts; with our launcher on several nodes it counts the rounds of the rendezvous. */
#define CONTRACT_ENV_ERROR_FILE "TORCHELASTIC_ERROR_FILE"
#define CONTRACT_ATTEMPT "/attempt_"
/* PID/NUMBER: descriptor NUMBER of process PID, the launcher, is a memory file (memfd) of this name. It is
 * empty at first and exists until the launcher ends, so a rank can keep data in it for the next attempt. The
 * launcher does not read it. A rank opens /proc/PID/fd/NUMBER; it inherits no descriptor. */
#define CONTRACT_ENV_KEPT_DATA "TORCHKEEPER_KEPT_DATA"
#define CONTRACT_KEPT_DATA_NAME "torchkeeper-kept-data"

/* PID/NUMBER as above: a memory file with the 32 bytes of the job's key (CONTRACT_ENV_JOB_KEY); not set: no
 * key. */
#define CONTRACT_ENV_KEY_FILE "TORCHKEEPER_KEY_FILE"
#define CONTRACT_KEY_FILE_NAME "torchkeeper-job-key"

/* PID/NUMBER/SLOT, PID/NUMBER as above: a memory file with one slot per rank of the node, in which a rank may
 * record what it does (host/rank_state.h). */
#define CONTRACT_ENV_RANK_STATE "TORCHKEEPER_RANK_STATE"
#define CONTRACT_RANK_STATE_NAME "torchkeeper-rank-state"
/* A file to which rank 0 may write its progress as one JSON object. The launcher sets the variable unless it
 * is set already. */
#define CONTRACT_ENV_PROGRESS_FILE "TORCHKEEPER_PROGRESS_FILE"

/* Kubernetes stops a pod with SIGTERM, and with SIGKILL after its grace period (30 s by default): ranks get
 * less time than that. */
enum { CONTRACT_SHUTDOWN_TIMEOUT_S = 20 };

#endif
