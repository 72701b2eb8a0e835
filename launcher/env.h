/* env.h - build the environment and the arguments of a rank, as torchrun does. agent.c calls it. No system
 * calls.
 *
 * Ownership: results are allocated in the arena; they may point into the base environment and the options.
 * Order:     a variable that the launcher sets replaces an inherited one, except OMP_NUM_THREADS and
 *            TORCH_NCCL_ASYNC_ERROR_HANDLING, which keep an inherited value.
 */
#ifndef TK_LAUNCHER_ENV_H
#define TK_LAUNCHER_ENV_H

#include "host/memory_file.h"
#include "launcher/options.h"

/* One start of all ranks. */
struct env_round {
    int node, nodes;               /* this node's rank; number of nodes */
    int first_rank, world;         /* the global rank of local rank 0; ranks over all nodes */
    int first_of_role, role_world; /* the same among the ranks of this node's role */
    int restart_count;
    const char *run_id;
    const char *master_addr;
    int master_port;
    /* Memory files (memory_file.h), for CONTRACT_ENV_KEPT_DATA, _KEY_FILE and, without the slot, _RANK_STATE; "": none. */
    char kept_data[MEMORY_FILE_BYTES], key_file[MEMORY_FILE_BYTES], rank_state[MEMORY_FILE_BYTES];
    const char *progress_file; /* for CONTRACT_ENV_PROGRESS_FILE; NULL: keep an inherited one */
};

/* Whether the launcher sets OMP_NUM_THREADS=1: `base` does not set it, and the node has several ranks. */
bool env_sets_omp(const struct options *o, char *const *base);

/* The environment of local rank `local`: `base` with the launcher's variables, ended by NULL. error_file: for
 * TORCHELASTIC_ERROR_FILE; NULL: none. */
char **env_build(const struct options *o, const struct env_round *round, int local, const char *error_file,
                 char *const *base, struct arena *a);

/* The argument vector of local rank `local`, ended by NULL. `python` is the interpreter, used when the program
 * needs one. Replaces "$local_rank" and "${local_rank}" in arguments; "$$" before the name becomes "$". */
char **env_arguments(const struct options *o, int local, const char *python, struct arena *a);

#endif
