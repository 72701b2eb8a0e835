/* rig_device.c - the device side of a rig: which GPU, its context, NCCL over it, and whether it is still there. */
#include "trainer/collectives/device.h"
#include "trainer/resident.h"
#include "trainer/rig.h"

#include <stdio.h>

int rig_find_device(struct rig *s, struct err *err)
{
    const struct gpu_ask ask = {.backend = s->ranks.backend,
                                .no_cuda = s->cfg->no_cuda,
                                .local_rank = s->ranks.local_rank,
                                .local_world = s->ranks.local_world,
                                .visible = s->env->get("CUDA_VISIBLE_DEVICES"),
                                .shared = s->env->get("NCCL_MULTI_RANK_GPU_ENABLE")};

    if (gpu_find(&ask, &s->env->gpu, &s->plugin, &s->gpu, err))
        return -1;
    if (!s->plugin || s->ranks.backend != COLLECTIVES_NCCL)
        return 0;
    s->nccl = s->ranks.world > 1;
    s->ranks.backend = COLLECTIVES_GLOO; /* for what lies in the process's memory */
    return 0;
}

/* A GPU that this run cannot use yet is a note, but for those who asked for nothing else. */
static int take_gpu(struct rig *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct err why;

    if (resident_check(s->comm->world > 1 && cfg->model.stages ? cfg->model.stages : 1,
                       cfg->zero_stage && s->comm->world > 1, &why)) {
        if ((enum collectives_backend)cfg->backend == COLLECTIVES_NCCL) {
            *err = why;
            return -1;
        }
        snprintf(s->gpu.note, sizeof(s->gpu.note), "the GPU is not used: %s", why.msg);
        return 0;
    }
    s->ctx = s->plugin->context(s->gpu.device, (enum precision)s->cfg->precision, ELEMENT_F32, err);
    if (!s->ctx)
        return -1;
    if (s->nccl && !(s->device_comm = s->plugin->nccl_open(s->comm, NULL, s->timeout_ms, err)))
        return -1;
    return 0;
}

int rig_open_device(struct rig *s, struct err *err)
{
    if (s->plugin && take_gpu(s, err))
        return -1;
    if (!s->ctx && s->cfg->precision != PRECISION_F32)
        return err_set(err, ERR_INVALID, "--precision: expected f32 on CPUs; the others need a GPU");
    return 0;
}

/* An NCCL that has not come up may still be at it, on threads of its own. */
bool rig_device_lost(const struct rig *s)
{
    bool asked = s->nccl && s->ctx && !device_is_host(s->ctx);

    return s->device_comm ? s->device_comm->lost : asked;
}
