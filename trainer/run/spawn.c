/* spawn.c - decide how many ranks to start on this host, with how many threads, and exec the torchrun beside this
 * program to start them. */
#include "trainer/run/spawn.h"

#include "common/contract.h"
#include "common/memory.h"
#include "common/sv.h"
#include "host/cpus.h"
#include "host/gpus.h"
#include "kernels/kctx.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int spawn_count(const struct config *cfg, char *(*get)(const char *name), const char *dev, int *ret,
                struct err *err)
{
    const char *rank = get(CONTRACT_ENV_RANK);

    *ret = 1;
    if (rank && *rank)
        return cfg->nprocs ? err_set(err, ERR_INVALID,
                                     "--nprocs %lld: a launcher has started this as RANK=%.20s: expected one "
                                     "of the two to start the ranks",
                                     (long long)cfg->nprocs, rank)
                           : 0;
    if (cfg->nprocs)
        *ret = (int)cfg->nprocs;
    else if (cfg->nprocs_default == NPROCS_GPUS)
        *ret = cfg->no_cuda ? 1 : gpus_visible(get("CUDA_VISIBLE_DEVICES"), gpus_devices(dev));
    else if (cfg->nprocs_default)
        *ret = (int)cfg->nprocs_default;
    if (*ret < 1)
        *ret = 1;
    return 0;
}

int spawn_threads(const char *omp, int cpus, int local_world, int max)
{
    struct sv rest = sv_from(omp);
    struct sv first;
    int64_t n = cpus / (local_world > 0 ? local_world : 1);
    int64_t said;

    if (omp && sv_next(&rest, ',', &first) && sv_i64(sv_trim(first), 1, INT32_MAX, &said))
        n = said;
    if (n < 1)
        n = 1;
    return n < max ? (int)n : max;
}

/* This program's path, and torchrun's beside it. */
static int find_launcher(char self[static PATH_MAX], char launcher[static PATH_MAX], struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

    if (n <= 0)
        return err_errno(err, ERR_FATAL, errno, "/proc/self/exe");
    self[n] = '\0';
    int len = snprintf(launcher, PATH_MAX, "%.*s/torchrun", (int)(strrchr(self, '/') - self), self);
    if (len >= PATH_MAX || access(launcher, X_OK))
        return err_set(
            err, ERR_NOT_FOUND,
            "--nprocs: %.120s: expected the launcher there, beside this program; or start the ranks by "
            "another one",
            launcher);
    return 0;
}

/* argv[1..] without --nprocs N. */
static void copy_words(int argc, char *const *argv, char **words)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--nprocs") == 0)
            i++;
        else if (strncmp(argv[i], "--nprocs=", 9) != 0)
            *words++ = argv[i];
    }
    *words = NULL;
}

/* Remove PET_*: these defaults are for a launcher that a user starts. */
static void clear_launcher_defaults(void)
{
    for (char **e = environ; e && *e;) {
        char name[256];
        size_t len = strcspn(*e, "=");
        if (strncmp(*e, "PET_", 4) != 0 || len >= sizeof(name)) {
            e++;
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)len, *e);
        unsetenv(name);
        e = environ;
    }
}

int spawn_ranks(int n, int argc, char *const *argv, struct err *err)
{
    enum { OWN_WORDS = 6 };
    char self[PATH_MAX];
    char launcher[PATH_MAX];
    char count[32];
    char threads[16];
    cleanup_free char **words = memory_must(calloc((size_t)argc + OWN_WORDS, sizeof(*words)));

    if (find_launcher(self, launcher, err))
        return -1;
    snprintf(count, sizeof(count), "--nproc_per_node=%d", n);
    words[0] = launcher;
    words[1] = (char *)"--standalone";
    words[2] = count;
    words[3] = (char *)"--no_python";
    words[4] = self;
    copy_words(argc, argv, words + 5);
    clear_launcher_defaults();
    /* Ranks share the CPUs, as in a program that spawns its own processes; torchrun's default is one thread
     * each. */
    snprintf(threads, sizeof(threads), "%d", spawn_threads(NULL, cpus_usable(), n, KCTX_THREADS_MAX));
    setenv("OMP_NUM_THREADS", threads, 0);
    execv(launcher, words);
    return err_errno(err, ERR_FATAL, errno, "cannot run %.120s", launcher);
}
