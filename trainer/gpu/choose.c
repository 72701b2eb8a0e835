/* choose.c - decide from the facts about a machine which GPU a rank uses, or why none. */
#include "trainer/gpu/choose.h"

#include <stdio.h>
#include <string.h>

/* Write why there is no usable GPU; "": there is one. CUDA 13.5 is 13050. */
static void why_none(const struct gpu_request *ask, const struct gpu_facts *f, char *out, size_t size)
{
    out[0] = '\0';
    if (!f->driver)
        snprintf(out, size, "no NVIDIA driver on this machine");
    else if (f->driver / 1000 < f->runtime / 1000)
        snprintf(out, size, "the NVIDIA driver serves CUDA %d.%d, expected %d.0 or newer", f->driver / 1000,
                 f->driver % 1000 / 10, f->runtime / 1000);
    else if (!f->devices)
        snprintf(out, size, "no GPU is visible (%s%.40s%s%.80s)",
                 ask->visible ? "CUDA_VISIBLE_DEVICES=" : "0 devices", ask->visible ? ask->visible : "",
                 f->why_none[0] ? ", " : "", f->why_none);
}

/* CUDA uses the entries before the first invalid one: "" and "-1" mean no GPU. */
static bool asked_for_none(const char *visible)
{
    return visible && (!visible[0] || visible[0] == '-');
}

static bool may_share(const struct gpu_request *ask)
{
    return ask->shared && strcmp(ask->shared, "1") == 0;
}

static int check_share(const struct gpu_request *ask, const struct gpu_facts *f, struct err *err)
{
    /* With one visible device and LOCAL_RANK=0, the launcher may give each rank its own device. */
    bool short_of = f->devices > 1 ? ask->local_world > f->devices : ask->local_rank >= f->devices;

    if (!short_of || may_share(ask))
        return 0;
    return err_set(
        err, ERR_INVALID,
        "--backend nccl: %d ranks here and %d GPU%s visible%s%.24s: expected a GPU for each rank: --nprocs, "
        "--nproc-per-node or procPerNode %d, or %d GPUs (NCCL_MULTI_RANK_GPU_ENABLE=1 lets ranks share, for "
        "tests)",
        ask->local_world, f->devices, f->devices == 1 ? "" : "s",
        ask->visible ? " in CUDA_VISIBLE_DEVICES=" : "", ask->visible ? ask->visible : "", f->devices,
        ask->local_world);
}

static void too_old(const struct gpu_facts *f, int device, char *out, size_t size)
{
    int has = device < GPU_DEVICES_MAX ? f->capability[device] : GPU_CAPABILITY_MIN;

    out[0] = '\0';
    if (has < GPU_CAPABILITY_MIN)
        snprintf(out, size, "GPU %d has compute capability %d.%d, expected %d.%d or newer", device, has / 10,
                 has % 10, GPU_CAPABILITY_MIN / 10, GPU_CAPABILITY_MIN % 10);
}

int gpu_choose(const struct gpu_request *ask, const struct gpu_facts *facts, struct gpu_choice *ret,
               struct err *err)
{
    bool nccl = ask->backend == COLLECTIVES_NCCL;
    char why[200];
    int device = GPU_NONE;

    *ret = (struct gpu_choice){.device = GPU_NONE};
    if (ask->no_cuda && nccl)
        return err_set(err, ERR_INVALID,
                       "--backend nccl works between GPUs, and --no_cuda forbids them: expected one of the "
                       "two, or --backend gloo");
    if (ask->no_cuda)
        return 0;
    why_none(ask, facts, why, sizeof(why));
    if (!why[0] && nccl && check_share(ask, facts, err))
        return -1;
    if (!why[0]) {
        device = ask->local_rank % facts->devices;
        too_old(facts, device, why, sizeof(why));
    }
    if (!why[0]) {
        ret->device = device;
        ret->sharers = nccl && !may_share(ask) ? 1 : (ask->local_world + facts->devices - 1) / facts->devices;
    } else if (nccl) {
        return err_set(err, ERR_INVALID,
                       "--backend nccl: %.150s; wanted: %d GPU%s (limits: nvidia.com/gpu), or --backend gloo",
                       why, ask->local_world, ask->local_world == 1 ? "" : "s");
    } else if (facts->driver && !asked_for_none(ask->visible)) {
        snprintf(ret->note, sizeof(ret->note), "training on the CPU: %.170s", why);
    }
    return 0;
}
