/* part.c - opening and closing what a part needs. */
#include "part.h"

#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const char *fakes;

void part_fakes(const char *folder)
{
    fakes = folder;
}

const char *part_library(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s.so", fakes, name);
    return path;
}

const struct fake_nccl_counts *part_counts(const char *name)
{
    void *handle = dlopen(part_library(name), RTLD_NOW | RTLD_NOLOAD);
    const struct fake_nccl_counts *(*get)(void);
    void *symbol = handle ? dlsym(handle, "fake_nccl_counts") : NULL;

    if (!symbol)
        abort();
    memcpy(&get, &symbol, sizeof(get));
    return get();
}

int part_main(struct collectives *c, void *arg)
{
    const struct part *p = arg;
    struct err err = {0};
    cudaStream_t stream;

    if (p->fault)
        setenv("FAKE_NCCL", p->fault, 1);
    RANK_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    struct device_comm *d = nccl_open(c, part_library(p->library ? p->library : "fake_nccl"),
                                      p->timeout_ms ? p->timeout_ms : RANKS_TIMEOUT_MS, &err);
    if (!d) {
        fprintf(stderr, "rank %d: %s\n", c->rank, err.msg);
        return collectives_exit_code(&err);
    }
    int rc = p->body(c, d, stream, p->arg);
    device_comm_close(d);
    (void)cudaStreamDestroy(stream);
    return rc;
}

void part_run(int world, struct part p)
{
    ranks_run(world, part_main, &p);
}

/* As run_parts; every rank ends with exit_code. */
void part_run_failing(int world, struct part p, int exit_code)
{
    struct ranks r;

    ranks_start(&r, world, part_main, &p);
    ranks_wait(&r);
    for (int i = 0; i < world; i++) {
        assert_true(WIFEXITED(r.status[i]));
        assert_int_equal(WEXITSTATUS(r.status[i]), exit_code);
    }
}
