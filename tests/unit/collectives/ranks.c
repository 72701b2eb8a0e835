/* ranks.c - forked ranks for the tests. */
#include "ranks.h"

#include "../ports.h"
#include "host/rank_state.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

struct collectives_config ranks_config(int rank, int world, char run_id[static 64])
{
    snprintf(run_id, 64, "test-%d", (int)(rank < 0 ? getpid() : getppid()));
    return (struct collectives_config){
        .rank = rank, .world = world, .local_rank = rank, .local_world = world, .run_id = run_id};
}

struct collectives_config ranks_pods_config(int rank, const struct ranks_layout *l, int port,
                                            char run_id[static 64])
{
    const int per_pod = l->per_pod ? l->per_pod : l->world, pod = rank / per_pod, first = pod * per_pod;
    struct collectives_config cfg = ranks_config(rank, l->world, run_id);

    cfg.group_rank = pod;
    cfg.local_rank = rank - first;
    cfg.local_world = l->world - first < per_pod ? l->world - first : per_pod;
    cfg.master_addr = "127.0.0.1";
    cfg.master_port = port;
    cfg.key.has = l->key;
    memset(cfg.key.bytes, l->key ? 7 : 0, sizeof(cfg.key.bytes));
    return cfg;
}

static int rank_main(int rank, const struct ranks_layout *l, int port,
                     int (*body)(struct collectives *c, void *arg), void *arg)
{
    char run_id[64];
    struct err err = {0};
    struct collectives_config cfg = ranks_pods_config(rank, l, port, run_id);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (l->before)
        l->before(rank);
    cfg.slot = rank_state_join(NULL);
    cleanup_collectives struct collectives *c = collectives_open(&cfg, RANKS_TIMEOUT_MS, &err);
    if (!c) {
        fprintf(stderr, "rank %d: open: %s\n", rank, err.msg);
        return RANK_FAILED;
    }
    snprintf(run_id, sizeof(run_id), "of rank %d", rank); /* it is borrowed until then */
    return body(c, arg);
}

void ranks_start_pods(struct ranks *r, const struct ranks_layout *l,
                      int (*body)(struct collectives *c, void *arg), void *arg)
{
    const int port = ports_take();

    *r = (struct ranks){.world = l->world};
    fflush(NULL);
    for (int i = 0; i < l->world; i++) {
        r->pids[i] = fork();
        assert_true(r->pids[i] >= 0);
        if (r->pids[i] == 0)
            _exit(rank_main(i, l, port, body, arg));
    }
}

void ranks_start(struct ranks *r, int world, int (*body)(struct collectives *c, void *arg), void *arg)
{
    ranks_start_pods(r, &(struct ranks_layout){.world = world}, body, arg);
}

void ranks_wait(struct ranks *r)
{
    for (int i = 0; i < r->world; i++)
        assert_int_equal(waitpid(r->pids[i], &r->status[i], 0), r->pids[i]);
}

void ranks_run_pods(const struct ranks_layout *l, int (*body)(struct collectives *c, void *arg), void *arg)
{
    struct ranks r;

    ranks_start_pods(&r, l, body, arg);
    ranks_wait(&r);
    for (int i = 0; i < l->world; i++)
        assert_int_equal(r.status[i], 0);
}

void ranks_run(int world, int (*body)(struct collectives *c, void *arg), void *arg)
{
    ranks_run_pods(&(struct ranks_layout){.world = world}, body, arg);
}
