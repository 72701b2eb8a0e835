/* launched.h - ranks that a test forks, with the environment that a launcher would give each. */
#ifndef TK_TESTS_TRAINER_LAUNCHED_H
#define TK_TESTS_TRAINER_LAUNCHED_H

enum { LAUNCHED_MAX = 8 };

/* This process's place; a program gives its name before its first run. */
struct launched {
    int rank, world;
    int port;               /* rank 0's, of the present run */
    const char *rank_state; /* for CONTRACT_ENV_RANK_STATE, without the slot; NULL: none */
    const char *test;       /* the run id is this and the ranks' common parent */
};
extern struct launched launched;

/* As getenv, in a rank; NULL for what a launcher does not set. */
char *launched_get(const char *name);

/* Forks the ranks of a run and waits for them: each ends with what body returns, codes[rank] as a shell sees it. LAUNCHED_MAX at most. */
void launched_run(int world, int (*body)(void *ctx, int rank), void *ctx, int *codes);

#endif
