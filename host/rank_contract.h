/* rank_contract.h - what a launcher gives its ranks besides common/contract.h: environment variables, and how they are stopped.
 */
#ifndef TK_HOST_RANK_CONTRACT_H
#define TK_HOST_RANK_CONTRACT_H

#include "common/contract.h"

#include <stdbool.h>
#include <sys/wait.h>

/* Whether a process with this status (of waitpid) would end the same way again. Launchers do not restart
 * it. */
static inline bool contract_is_final(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CODE_USAGE;
}

#define CONTRACT_ENV_LOCAL_WORLD_SIZE "LOCAL_WORLD_SIZE" /* torchrun's name, as those below */
#define CONTRACT_ENV_RUN_ID "TORCHELASTIC_RUN_ID"
#define CONTRACT_ENV_RESTART_COUNT "TORCHELASTIC_RESTART_COUNT"
/* FOLDER/attempt_N/LOCAL-RANK/error.json: FOLDER is made by the launcher for this launch on this node. N counts restarts, and with
 * our launcher on several nodes the rounds of the meeting. */
#define CONTRACT_ENV_ERROR_FILE "TORCHELASTIC_ERROR_FILE"
#define CONTRACT_ATTEMPT "/attempt_"
/* PID/NUMBER: descriptor NUMBER of process PID, the launcher, is a memory file (memfd) of this name, empty at first and kept until
 * the launcher ends. What a rank leaves in it is there for the next attempt; the launcher does not look. Opened as
 * /proc/PID/fd/NUMBER: no descriptor is inherited. */
#define CONTRACT_ENV_KEPT_DATA "TORCHKEEPER_KEPT_DATA"
#define CONTRACT_KEPT_DATA_NAME "torchkeeper-kept-data"

/* PID/NUMBER as above: a memory file with the 32 bytes of the job's key (CONTRACT_ENV_JOB_KEY); not set: the job has none. */
#define CONTRACT_ENV_KEY_FILE "TORCHKEEPER_KEY_FILE"
#define CONTRACT_KEY_FILE_NAME "torchkeeper-job-key"

/* PID/NUMBER/SLOT, PID/NUMBER as above: a memory file with one slot for each rank of the node, in which a rank may note what
 * it does (host/rank_state.h). */
#define CONTRACT_ENV_RANK_STATE "TORCHKEEPER_RANK_STATE"
#define CONTRACT_RANK_STATE_NAME "torchkeeper-rank-state"
/* A file in which rank 0 may leave its progress as one JSON object; set by the launcher, unless it has it already. */
#define CONTRACT_ENV_PROGRESS_FILE "TORCHKEEPER_PROGRESS_FILE"

/* A pod is stopped with SIGTERM, and SIGKILL after its grace period (30 s by default): ranks get less than
 * that to stop. */
enum { CONTRACT_SHUTDOWN_TIMEOUT_S = 20 };

#endif
