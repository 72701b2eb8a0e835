/* find.c - load the GPU plug-in if one may be used, and choose this rank's GPU. */
#include "trainer/gpu/find.h"

#include "common/plugin.h"

#include <stdio.h>
#include <unistd.h>

const struct gpu_plugin *gpu_plugin_load(const char *dir, struct err *err)
{
    static const struct plugin p = {
        .what = "GPU support", .file = GPU_PLUGIN_FILE, .symbol = GPU_PLUGIN_SYMBOL, .abi = GPU_PLUGIN_ABI};

    return plugin_load(&p, dir, err);
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
