/* one_rank.h - start one rank at a time, each with a configuration of its own, and see how it ends. */
#ifndef TK_TESTS_UNIT_COLLECTIVES_ONE_RANK_H
#define TK_TESTS_UNIT_COLLECTIVES_ONE_RANK_H

#include "collectives/collectives.h"

#include <sys/types.h>

/* What a rank does with its table: sums of several sizes; 0, or it exits with RANK_FAILED. */
int one_rank_sums_up(struct collectives *c);

/* Fork a rank that opens its table and sums up: its exit status shows how that ended, the pipe `said` (-1: none) why it could not
 * open. */
pid_t one_rank_start(struct collectives_config cfg, int64_t timeout_ms, int said);

/* Wait for the process, which exits: its status. */
int one_rank_ended(pid_t pid);

/* What the next read of the pipe gives, as a string. */
void one_rank_said(int fd, char *out, size_t size);

#endif
