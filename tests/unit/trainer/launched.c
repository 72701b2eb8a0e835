/* launched.c - forked ranks and their environment. */
#include "test.h"

#include "launched.h"

#include "common/contract.h"
#include "host/rank_contract.h"
#include "ports.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct launched launched;

char *launched_get(const char *name)
{
    static char rank[16], world[16], port[16], id[64], slot[64];

    snprintf(rank, sizeof(rank), "%d", launched.rank);
    snprintf(world, sizeof(world), "%d", launched.world);
    snprintf(port, sizeof(port), "%d", launched.port);
    snprintf(id, sizeof(id), "%s-%d", launched.test, (int)getppid());
    if (strcmp(name, CONTRACT_ENV_RANK) == 0 || strcmp(name, CONTRACT_ENV_LOCAL_RANK) == 0)
        return rank;
    if (strcmp(name, CONTRACT_ENV_WORLD_SIZE) == 0 || strcmp(name, CONTRACT_ENV_LOCAL_WORLD_SIZE) == 0)
        return world;
    if (strcmp(name, CONTRACT_ENV_MASTER_ADDR) == 0)
        return (char *)"127.0.0.1";
    if (strcmp(name, CONTRACT_ENV_MASTER_PORT) == 0)
        return port;
    snprintf(slot, sizeof(slot), "%s/%d", launched.rank_state ? launched.rank_state : "", launched.rank);
    if (strcmp(name, CONTRACT_ENV_RANK_STATE) == 0)
        return launched.rank_state ? slot : NULL;
    return strcmp(name, CONTRACT_ENV_RUN_ID) == 0 ? id : NULL;
}

void launched_run(int world, int (*body)(void *ctx, int rank), void *ctx, int *codes)
{
    pid_t pids[LAUNCHED_MAX];

    assert_true(world <= LAUNCHED_MAX);
    launched.world = world;
    launched.port = ports_take();
    fflush(NULL);
    for (int r = 0; r < world; r++) {
        launched.rank = r;
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (pids[r] == 0)
            _exit(body(ctx, r));
    }
    for (int r = 0; r < world; r++) {
        int status;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_SIGNAL_BASE + WTERMSIG(status);
    }
}
