/* ranks.c - forked ranks for the tests. */
#include "ranks.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

struct collectives_config ranks_config(int rank, int world, char run_id[static 64])
{
    snprintf(run_id, 64, "test-%d", (int)(rank < 0 ? getpid() : getppid()));
    return (struct collectives_config){
        .rank = rank, .world = world, .local_rank = rank, .local_world = world, .run_id = run_id};
}

static int rank_main(int rank, int world, int (*body)(struct collectives *c, void *arg), void *arg)
{
    char run_id[64];
    struct err err = {0};
    const struct collectives_config cfg = ranks_config(rank, world, run_id);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cleanup_collectives struct collectives *c = collectives_open(&cfg, RANKS_TIMEOUT_MS, &err);
    if (!c) {
        fprintf(stderr, "rank %d: open: %s\n", rank, err.msg);
        return RANK_FAILED;
    }
    return body(c, arg);
}

void ranks_start(struct ranks *r, int world, int (*body)(struct collectives *c, void *arg), void *arg)
{
    *r = (struct ranks){.world = world};
    fflush(NULL);
    for (int i = 0; i < world; i++) {
        r->pids[i] = fork();
        assert_true(r->pids[i] >= 0);
        if (r->pids[i] == 0)
            _exit(rank_main(i, world, body, arg));
    }
}

void ranks_wait(struct ranks *r)
{
    for (int i = 0; i < r->world; i++)
        assert_int_equal(waitpid(r->pids[i], &r->status[i], 0), r->pids[i]);
}

void ranks_run(int world, int (*body)(struct collectives *c, void *arg), void *arg)
{
    struct ranks r;

    ranks_start(&r, world, body, arg);
    ranks_wait(&r);
    for (int i = 0; i < world; i++)
        assert_int_equal(r.status[i], 0);
}
