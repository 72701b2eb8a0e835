/* session_device.c - the GPU of a run: choose it, open its context and NCCL, detect whether it is lost. */
#include "collectives/device.h"
#include "trainer/run/session.h"

int session_find_device(struct session *s, struct err *err)
{
    const struct gpu_request ask = {.backend = (enum collectives_backend)s->cfg->backend,
                                    .no_cuda = s->cfg->no_cuda,
                                    .local_rank = s->ranks.local_rank,
                                    .local_world = s->ranks.local_world,
                                    .visible = s->env->get("CUDA_VISIBLE_DEVICES"),
                                    .shared = s->env->get("NCCL_MULTI_RANK_GPU_ENABLE")};

    if (gpu_find(&ask, &s->env->gpu, &s->plugin, &s->gpu, err))
        return -1;
    s->nccl = s->plugin && ask.backend == COLLECTIVES_NCCL && s->ranks.world > 1;
    return 0;
}

/* The element type on a device. Layers of images support only f32. */
static struct model_numbers numbers_of(const struct config *cfg)
{
    const bool bf16 = cfg->precision == PRECISION_BF16 && cfg->model.input.sequence;

    return (struct model_numbers){.on_device = true, .element = bf16 ? ELEMENT_BF16 : ELEMENT_F32};
}

static int take_gpu(struct session *s, struct err *err)
{
    const struct config *cfg = s->cfg;

    s->effective.model.numbers = numbers_of(cfg);
    const enum element element = s->effective.model.numbers.element;
    s->ctx = s->plugin->context(
        s->gpu.device, element == ELEMENT_F32 ? (enum precision)cfg->precision : PRECISION_F32, element, err);
    if (!s->ctx)
        return -1;
    if (s->nccl && !(s->device_comm = s->plugin->nccl_open(s->comm, NULL, s->timeout_ms, err)))
        return -1;
    return 0;
}

int session_open_device(struct session *s, struct err *err)
{
    if (s->effective.precision == CONFIG_PRECISION_AUTO)
        s->effective.precision =
            s->plugin && s->effective.model.input.sequence ? PRECISION_BF16 : PRECISION_F32;
    if (s->plugin && take_gpu(s, err))
        return -1;
    if (!s->ctx && s->cfg->precision != PRECISION_F32)
        return err_set(err, ERR_INVALID, "--precision: expected f32 on CPUs; the others need a GPU");
    return 0;
}

/* If NCCL failed to initialise, its threads may still use the device. */
bool session_device_lost(const struct session *s)
{
    bool asked = s->nccl && s->ctx && !device_is_host(s->ctx);

    return s->device_comm ? s->device_comm->lost : asked;
}
