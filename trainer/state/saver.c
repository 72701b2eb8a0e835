/* saver.c - decide by steps and time when a checkpoint is due, copy the state and hand it to the writer. */
#include "trainer/state/saver.h"

#include "collectives/collectives.h"

#include <stdio.h>
#include <string.h>

int saver_open(struct saver *s, const struct snapshot *shape, struct err *why)
{
    if (s->rank != 0 || !s->dir)
        return 0;
    s->writer = writer_open(why);
    s->asynchronous = writer_has_thread(s->writer) &&
                      (!(s->save_steps || s->save_ms) || snapshot_copy_make(&s->copy, shape, why) == 0);
    return s->asynchronous ? 0 : -1;
}

void saver_close(struct saver *s)
{
    writer_close(s->writer);
    s->writer = NULL;
    snapshot_copy_release(&s->copy);
}

uint32_t saver_flags(struct saver *s, int64_t step)
{
    if (!s->writer)
        return 0;
    if ((s->save_steps && step % s->save_steps == 0) ||
        (s->save_ms && s->clock.mono_ms(s->clock.ctx) - s->last_ms >= s->save_ms))
        s->due = true;
    if (!s->due || s->asked || writer_busy(s->writer))
        return 0;
    s->asked = true;
    return COLLECTIVES_SAVE;
}

void saver_save(struct saver *s, const struct snapshot *what, bool unchanging)
{
    const int64_t step = what->cursor->step;
    struct writer_job job = {.what = *what, .dir = s->dir, .keep = s->keep};

    s->wanted = s->due = s->asked = false;
    if (!s->writer || step == s->last_step)
        return;
    s->writing_step = step;
    job.manifest = (struct manifest){
        .step = step, .config = s->config, .launch = s->launch, .saved_ms = s->clock.wall_ms(s->clock.ctx)};
    snprintf(job.manifest.run_id, sizeof(job.manifest.run_id), "%s", s->run_id);
    s->last_ms = s->clock.mono_ms(s->clock.ctx);
    if (!unchanging && s->copy.bytes)
        job.what = *snapshot_copy_take(&s->copy, what);
    writer_begin(s->writer, &job);
}

bool saver_wait(struct saver *s, int64_t timeout_ms)
{
    return !s->writer || writer_wait(s->writer, timeout_ms);
}

/* Where there is no code the text says which it is. */
static bool same_reason(const struct err *a, const struct err *b)
{
    return a->kind == b->kind && a->code == b->code && (a->code || strcmp(a->msg, b->msg) == 0);
}

bool saver_end(struct saver *s, struct saver_outcome *ret)
{
    struct err outcome;

    if (!s->writer || !writer_end(s->writer, &outcome))
        return false;
    *ret = (struct saver_outcome){.step = s->writing_step, .err = outcome};
    if (outcome.kind)
        ret->same_reason = same_reason(&outcome, &s->failed);
    else
        s->last_step = s->writing_step;
    s->failed = outcome;
    return true;
}
