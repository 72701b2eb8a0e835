/* env.h - what a rank is started with: environment and arguments. Pure.
 *
 * Ownership: results live in the arena; they may point into the base environment and the options.
 * Order:     a variable that we set replaces the one inherited, whatever it was; OMP_NUM_THREADS and
 *            TORCH_NCCL_ASYNC_ERROR_HANDLING are the user's when they are set.
 */
#ifndef TK_LAUNCHER_ENV_H
#define TK_LAUNCHER_ENV_H

#include "launcher/options.h"

/* One start of all ranks. */
struct env_round {
    int node, nodes;       /* this one's number, how many */
    int first_rank, world; /* of this node; over all */
    int restart_count;
    const char *run_id;
    const char *master_addr;
    int master_port;
};

/* Does the launcher have to set OMP_NUM_THREADS (it is unset and there are several ranks)? */
bool env_sets_omp(const struct options *o, char *const *base);

/* The environment of local rank `local`; error_file NULL: none. */
char **env_build(const struct options *o, const struct env_round *round, int local, const char *error_file,
                 char *const *base, struct arena *a);

/* The words to execute for local rank `local`; `python` is the interpreter, used when the program needs one. */
char **env_arguments(const struct options *o, int local, const char *python, struct arena *a);

#endif
