/* ranks.h - run a function as several forked ranks and collect how each ended. */
#ifndef TK_TESTS_RANKS_H
#define TK_TESTS_RANKS_H

#include "trainer/collectives/collectives.h"

#include <sys/types.h>

enum { RANKS_MAX = 16, RANKS_TIMEOUT_MS = 60000 };

/* Exit status of a rank whose check failed: the line is on stderr. */
enum { RANK_FAILED = 99 };

#define RANK_CHECK(cond)                                                                                     \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, c ? c->rank : -1, #cond);            \
            _exit(RANK_FAILED);                                                                              \
        }                                                                                                    \
    } while (0)

struct ranks {
    int world;
    pid_t pids[RANKS_MAX];
    int status[RANKS_MAX]; /* as waitpid gives it */
};

/* A configuration whose run id no other test run shares. */
struct collectives_config ranks_config(int rank, int world, char run_id[static 64]);

/* Fork `world` ranks: each opens a table, calls body and exits with what it returns. */
void ranks_start(struct ranks *r, int world, int (*body)(struct collectives *c, void *arg), void *arg);

/* Wait for all. */
void ranks_wait(struct ranks *r);

/* Start, wait, and fail the test unless every rank returned 0. */
void ranks_run(int world, int (*body)(struct collectives *c, void *arg), void *arg);

#endif
