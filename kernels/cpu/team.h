/* team.h - a fixed team of threads that run one job at a time together.
 *
 * Order: team_run returns when every unit is done; the caller does the first share itself.
 */
#ifndef TK_KERNELS_CPU_TEAM_H
#define TK_KERNELS_CPU_TEAM_H

#include "kernels/cpu/run.h"

struct team;

/* threads >= 2, the caller's included. Errors: ERR_FATAL. */
struct team *team_make(int threads, struct err *err) MUST_CHECK;
void team_free(struct team *t);
void team_run(struct team *t, int n, run_fn *fn, void *arg);

#endif
