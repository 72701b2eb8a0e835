/* run_checkpoint.c - save a run's state between steps: all ranks gather it on rank 0, whose thread writes it;
 * rank 0 reports the result. */
#include "trainer/run/run_epoch.h"

#include "host/rank_state.h"

enum { BEAT_MS = 1000, BEATS_PER_TIMEOUT = 4 };

int run_report_saves(struct session *s, bool last, struct err *err)
{
    struct saver_outcome o;

    if (!saver_end(&s->saver, &o))
        return 0;
    if (o.err.kind == ERR_PEER) {
        *err = o.err;
        return err_wrap(err, "--ckpt_dir");
    }
    if (!o.err.kind && !last)
        report_checkpoint(s->report, s->cfg->ckpt_dir, o.step, false, false);
    if (!o.err.kind || (o.same_reason && !last))
        return 0;
    if (o.err.kind == ERR_TRANSIENT)
        err_wrap(&o.err, "checkpoint of step %lld may not survive a power cut: --ckpt_dir",
                 (long long)o.step);
    else
        err_wrap(&o.err, "no checkpoint written: --ckpt_dir: step %lld", (long long)o.step);
    report_note(s->report, true, o.err.msg);
    return 0;
}

/* While its thread writes, rank 0 broadcasts each second that it is alive. These broadcasts do not count as
 * progress in the ranks' slots; only written data do, so that the launcher detects a file system that
 * hangs. */
int run_settle(struct session *s, bool last, struct err *err)
{
    const int64_t part = s->timeout_ms / BEATS_PER_TIMEOUT;
    uint8_t busy = 1;

    while (busy) {
        if (s->comm->rank == 0)
            busy = !saver_wait(&s->saver, part < BEAT_MS ? part : BEAT_MS);
        if (s->comm->broadcast(s->comm, &busy, sizeof(busy), 0, s->timeout_ms, err))
            return -1;
    }
    return run_report_saves(s, last, err);
}

/* The previous checkpoint is written. */
int run_checkpoint(struct session *s, bool last, struct err *err)
{
    const enum rank_phase was = rank_state_phase(s->slot, RANK_SAVING);

    if (session_gather(s, err))
        return -1;
    const struct snapshot all = session_snapshot(s);
    saver_save(&s->saver, &all, last);
    if ((!s->saver.asynchronous || last) && run_settle(s, last, err))
        return -1;
    rank_state_phase(s->slot, was);
    return 0;
}

int run_last_checkpoint(struct session *s, struct err *err)
{
    rank_state_phase(s->slot, RANK_SAVING);
    if (run_settle(s, false, err) || run_checkpoint(s, true, err))
        return -1;
    /* also if it was written before the stop signal */
    if (s->comm->rank == 0 && s->saver.last_step == s->cursor.step)
        report_checkpoint(s->report, s->cfg->ckpt_dir, s->cursor.step, true, !s->run_id.later_attempt);
    return 0;
}

int run_await_checkpoint(struct session *s, struct err *err)
{
    (void)saver_wait(&s->saver, -1);
    return run_report_saves(s, false, err);
}
