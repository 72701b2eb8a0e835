/* part.c - opening and closing what a part needs. */
#include "part.h"

#include "common/clock.h"
#include "test.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *fakes;
static _Atomic int *ended; /* ranks whose verdict is known, in memory of all */

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

static void wait_for_all(const struct collectives *c)
{
    const int64_t end_ms = clock_mono_ms() + RANKS_TIMEOUT_MS;

    ++*ended;
    while (*ended < c->world && clock_mono_ms() < end_ms)
        usleep(1000);
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
        if (p->stays)
            wait_for_all(c);
        return collectives_exit_code(&err);
    }
    int rc = p->body(c, d, stream, p->arg);
    if (p->stays)
        wait_for_all(c);
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

    ended = mmap(NULL, sizeof(*ended), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(ended, MAP_FAILED);
    ranks_start(&r, world, part_main, &p);
    ranks_wait(&r);
    assert_int_equal(munmap(ended, sizeof(*ended)), 0);
    for (int i = 0; i < world; i++) {
        assert_true(WIFEXITED(r.status[i]));
        assert_int_equal(WEXITSTATUS(r.status[i]), exit_code);
    }
}
