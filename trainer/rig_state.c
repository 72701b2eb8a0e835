/* rig_state.c - what a run keeps on disk: where it begins, what a checkpoint holds, who saves. */
#include "trainer/rig.h"

struct snapshot rig_snapshot(struct rig *s)
{
    if (s->pipeline.whole)
        return (struct snapshot){.model = s->pipeline.whole, .optim = &s->whole_optim, .cursor = &s->cursor};
    return (struct snapshot){.model = s->model, .optim = &s->optim, .cursor = &s->cursor};
}

int rig_gather(struct rig *s, struct err *err)
{
    struct model *whole;

    if (s->pipeline.at.stages == 1)
        return 0;
    s->whole_optim.step = s->optim.step;
    return pipeline_whole(&s->pipeline, &whole, err) ||
                   (s->optim.m && pipeline_gather(&s->pipeline, s->optim.m, s->whole_optim.m, err)) ||
                   (s->optim.v && pipeline_gather(&s->pipeline, s->optim.v, s->whole_optim.v, err))
               ? -1
               : 0;
}

/* The way back, after rank 0 has read a checkpoint. */
static int scatter(struct rig *s, struct err *err)
{
    s->optim.step = s->cursor.step;
    return pipeline_spread(&s->pipeline, err) ||
                   (s->optim.m && pipeline_scatter(&s->pipeline, s->optim.m, s->whole_optim.m, err)) ||
                   (s->optim.v && pipeline_scatter(&s->pipeline, s->optim.v, s->whole_optim.v, err))
               ? -1
               : 0;
}

int rig_begin(struct rig *s, struct err *err)
{
    const struct config *cfg = s->cfg;

    if (run_id_find(s->env->get, &s->run_id, err))
        return -1;
    struct resume_options o = {.how = cfg->resume,
                               .dir = cfg->ckpt_dir,
                               .config = config_resumable(cfg),
                               .run_id = s->run_id.text,
                               .later_attempt = s->run_id.later_attempt,
                               .stages = s->pipeline.at.stages,
                               .timeout_ms = s->timeout_ms};
    struct snapshot all = rig_snapshot(s);

    s->cursor = (struct cursor){.epoch = 1};
    if (resume(&all, s->comm, &o, &s->resumed, err) ||
        (s->resumed.resumed && s->pipeline.at.stages > 1 && scatter(s, err)))
        return -1;
    if (s->resumed.resumed)
        run_id_take_over(&s->run_id, s->resumed.run_id);
    s->saver = (struct saver){.dir = cfg->ckpt_dir,
                              .save_steps = cfg->save_steps,
                              .save_ms = (int64_t)(cfg->save_seconds * 1000),
                              .keep = cfg->keep,
                              .config = o.config,
                              .run_id = o.run_id,
                              .rank = s->comm->rank,
                              .clock = s->env->clock,
                              .last_ms = s->env->clock.mono_ms(s->env->clock.ctx),
                              .last_step = -1};
    return 0;
}
