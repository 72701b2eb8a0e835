/* saver.c - decide by steps and time when a checkpoint is due, and write it. */
#include "trainer/state/saver.h"

#include "collectives/collectives.h"

#include <stdio.h>

uint32_t saver_flags(const struct saver *s)
{
    if (s->rank != 0 || !s->save_ms || s->clock.mono_ms(s->clock.ctx) - s->last_ms < s->save_ms)
        return 0;
    return COLLECTIVES_SAVE;
}

bool saver_due(const struct saver *s, int64_t step, uint32_t flags)
{
    return (flags & COLLECTIVES_SAVE) || (s->save_steps && step % s->save_steps == 0);
}

int saver_save(struct saver *s, const struct snapshot *what, struct err *err)
{
    cleanup_ckpt_writer struct ckpt_writer w = {.tmp = ""};
    struct manifest m = {.step = what->cursor->step,
                         .config = s->config,
                         .launch = s->launch,
                         .saved_ms = s->clock.wall_ms(s->clock.ctx)};

    if (s->rank != 0 || !s->dir || m.step == s->last_step)
        return 0;
    snprintf(m.run_id, sizeof(m.run_id), "%s", s->run_id);
    int rc = snapshot_check(what, err) || ckpt_begin(&w, s->dir, &m, err) || snapshot_write(what, &w, err) ||
             ckpt_commit(&w, s->keep, err);
    s->last_ms = s->clock.mono_ms(s->clock.ctx);
    if (rc)
        return -1;
    s->last_step = m.step;
    return 0;
}
