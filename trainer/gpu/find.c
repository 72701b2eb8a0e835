/* find.c - load the GPU plug-in if one may be used, and choose this rank's GPU. */
#include "trainer/gpu/find.h"
#include "common/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* False when it does not exist or the path is too long. */
static bool find_in(const char *dir, char path[static PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/" GPU_PLUGIN_FILE, dir) < PATH_MAX && access(path, R_OK) == 0;
}

static int find_file(const char *dir, char path[static PATH_MAX], struct err *err)
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
    return err_set(err, ERR_NOT_FOUND,
                   "this build has no GPU support (%.120s/" GPU_PLUGIN_FILE " is not there)", self);
}

const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err)
{
    char path[PATH_MAX];

    if (find_file(dir, path, err))
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct gpu_plugin *plugin = handle ? dlsym(handle, GPU_PLUGIN_SYMBOL) : NULL;
    if (!plugin) {
        const char *why = dlerror();
        err_set(err, ERR_INVALID, "the GPU support cannot be loaded: %s", why ? why : path);
        return NULL;
    }
    if (plugin->abi != GPU_PLUGIN_ABI) {
        err_set(err, ERR_INVALID, "%.160s: of another build (interface %u, expected %u)", path, plugin->abi,
                (unsigned)GPU_PLUGIN_ABI);
        return NULL;
    }
    return plugin;
}

/* The driver's control device, or that of Windows Subsystem for Linux. */
static bool has_driver(const char *dev)
{
    static const char *const names[] = {"nvidiactl", "dxg"};
    char path[256];

    for (size_t i = 0; dev && i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%.200s/%s", dev, names[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

int gpu_find(const struct gpu_request *ask, const struct gpu_where *where, const struct gpu_plugin **plugin,
             struct gpu_choice *ret, struct err *err)
{
    const bool nccl = ask->backend == COLLECTIVES_NCCL;
    const struct gpu_plugin *p = NULL;
    struct gpu_facts facts = {0};
    struct err why;

    *plugin = NULL;
    *ret = (struct gpu_choice){.device = GPU_NONE};
    if (!ask->no_cuda) {
        if (!nccl && !has_driver(where->dev))
            return 0;
        p = gpu_plugin_load(where->dir, &why);
        if (!p || p->facts(&facts, &why)) {
            const bool absent = !p && why.kind == ERR_NOT_FOUND;
            if (nccl)
                return err_set(err, why.kind, "--backend nccl: %.155s: %s --backend gloo", why.msg,
                               absent ? "use an image with it (trainer-cuda), or"
                                      : "look at the node's driver and runtime, or use");
            snprintf(ret->note, sizeof(ret->note), "training on the CPU: %.170s", why.msg);
            return 0;
        }
    }
    if (gpu_choose(ask, &facts, ret, err))
        return -1;
    if (ret->device != GPU_NONE)
        *plugin = p;
    return 0;
}
