/* ranks.h - run a function as several forked ranks and collect how each ended. */
#ifndef TK_TESTS_UNIT_COLLECTIVES_RANKS_H
#define TK_TESTS_UNIT_COLLECTIVES_RANKS_H

#include "collectives/collectives.h"

#include <sys/types.h>

enum { RANKS_MAX = 64, RANKS_TIMEOUT_MS = 400000 };

/* Exit status of a rank whose check failed: the line is on stderr. */
enum { RANK_FAILED = 99 };

#define RANK_CHECK(cond)                                                                                     \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, c ? c->rank : -1, #cond);            \
            _exit(RANK_FAILED);                                                                              \
        }                                                                                                    \
    } while (0)

/* The same for a call of a table, whose `err` reports why. */
#define RANK_OK(call)                                                                                        \
    do {                                                                                                     \
        if ((call) != 0) {                                                                                   \
            fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, c->rank, #call, err.msg);        \
            _exit(RANK_FAILED);                                                                              \
        }                                                                                                    \
    } while (0)

/* Pods are played by groups of processes that share nothing but what the transport gives them. */
struct ranks_layout {
    int world;
    int per_pod;              /* the last pod may have fewer; 0: all in one */
    bool key;                 /* they have one */
    void (*before)(int rank); /* called in each rank before it opens its table; NULL: nothing */
};

struct ranks {
    int world;
    pid_t pids[RANKS_MAX];
    int status[RANKS_MAX]; /* as waitpid gives it */
};

/* A configuration whose run id no other test run shares. */
struct collectives_config ranks_config(int rank, int world, char run_id[static 64]);

/* The same for several pods; `port` is that of rank 0's watch. */
struct collectives_config ranks_pods_config(int rank, const struct ranks_layout *l, int port,
                                            char run_id[static 64]);
void ranks_start_pods(struct ranks *r, const struct ranks_layout *l,
                      int (*body)(struct collectives *c, void *arg), void *arg);
void ranks_run_pods(const struct ranks_layout *l, int (*body)(struct collectives *c, void *arg), void *arg);

/* Fork `world` ranks: each opens a table, calls body and exits with what it returns. */
void ranks_start(struct ranks *r, int world, int (*body)(struct collectives *c, void *arg), void *arg);

/* Wait for all. */
void ranks_wait(struct ranks *r);

/* Start, wait, and fail the test unless every rank returned 0. */
void ranks_run(int world, int (*body)(struct collectives *c, void *arg), void *arg);

#endif
