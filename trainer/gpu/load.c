/* load.c - dlopen, and nothing kept from whom it does not concern. */
#include "trainer/gpu/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* dir/libtk_cuda.so; false when there is none (or no such path). */
static bool find_in(const char *dir, char path[static PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", dir, GPU_PLUGIN_FILE) < PATH_MAX && access(path, R_OK) == 0;
}

static int find(const char *dir, char path[static PATH_MAX], struct err *err)
{
    char self[PATH_MAX];
    char lib[PATH_MAX + 32];

    if (dir)
        return find_in(dir, path) ? 0 : err_set(err, ERR_NOT_FOUND, "%.160s: no GPU support there", path);
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return err_errno(err, ERR_FATAL, errno, "/proc/self/exe");
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(lib, sizeof(lib), "%s/../lib/torchkeeper", self);
    if (find_in(self, path) || find_in(lib, path))
        return 0;
    return err_set(err, ERR_NOT_FOUND, "this build has no GPU support (%.120s/%s is not there)", self,
                   GPU_PLUGIN_FILE);
}

const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err)
{
    char path[PATH_MAX];

    if (find(dir, path, err))
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct gpu_plugin *p = handle ? dlsym(handle, GPU_PLUGIN_SYMBOL) : NULL;
    if (!p) {
        const char *why = dlerror();
        err_set(err, ERR_INVALID, "the GPU support cannot be loaded: %s", why ? why : path);
        return NULL;
    }
    if (p->abi != GPU_PLUGIN_ABI) {
        err_set(err, ERR_INVALID, "%.160s: of another build (interface %u, expected %d)", path, p->abi,
                GPU_PLUGIN_ABI);
        return NULL;
    }
    return p;
}
