/* run_epoch.c - train the steps of one epoch; report, validate and checkpoint where they are due. */
#include "trainer/run/run_epoch.h"

#include "host/rank_state.h"

#include <math.h>

enum { STOP = COLLECTIVES_STOP_TERM | COLLECTIVES_STOP_INT };

static int64_t log_interval(const struct config *cfg, int world)
{
    int64_t n = cfg->log_interval ? cfg->log_interval : cfg->log_interval_all_ranks / world;

    return n > 0 ? n : 1;
}

static int not_finite(float loss, int64_t epoch, int64_t step, int64_t global_step, struct err *err)
{
    return err_set(err, ERR_FATAL, "the loss is %s in epoch %lld, batch %lld (step %lld): try a lower --lr",
                   isinf(loss) ? "infinite" : "not a number", (long long)epoch, (long long)step,
                   (long long)global_step);
}

/* Write weights as histograms, if due. */
static int describe_step(struct session *s, struct err *err)
{
    if (!s->histograms_every || s->cursor.step % s->histograms_every != 0)
        return 0;
    if (train_pull(&s->train, s->report ? TRAIN_READS_WEIGHTS : TRAIN_READS_NOTHING, err))
        return -1;
    report_histograms(s->report, s->model, s->cursor.step);
    return 0;
}

/* Whether the loss or a checkpoint of the next step is needed at once. Otherwise the device may report it
 * later. */
static bool is_exact(const struct session *s, int64_t steps)
{
    const struct cursor *c = &s->cursor;
    const int64_t each = s->saver.save_steps;

    if (each && (c->step + 1) % each == 0)
        return true;
    return (c->epoch_step + 1) % log_interval(s->cfg, s->pipeline.at.replicas) == 0 ||
           c->epoch_step + 1 == steps;
}

/* After a step: update the cursor, and report, validate and save if due. */
static int after_step(struct session *s, int64_t steps, int64_t taken, const struct train_result *r,
                      uint32_t *stop, struct err *err)
{
    struct cursor *c = &s->cursor;
    int64_t len = sampler_len(&s->train.p.sampler);

    c->step++;
    c->epoch_step++;
    c->consumed =
        s->train.p.sampler.first +
        (taken * s->cfg->batch_size < len ? taken * s->cfg->batch_size : len) * s->pipeline.at.replicas;
    if (c->epoch_step % log_interval(s->cfg, s->pipeline.at.replicas) == 0) {
        report_step(s->report, c->epoch, c->epoch_step, (double)r->loss);
        run_report_speed(s);
    }
    if (r->known)
        report_progress(s->report, c->epoch, c->epoch_step, (double)r->loss);
    if (describe_step(s, err))
        return -1;
    if (run_report_saves(s, false, err))
        return -1;
    s->saver.wanted = s->saver.wanted || (r->flags & COLLECTIVES_SAVE);
    if (run_validates_now(s, steps) && !(r->flags & STOP) && run_validate(s, stop, err))
        return -1;
    /* After an epoch's last step, validation comes before the checkpoint, so that a resumed run need not
     * repeat it. */
    return s->saver.wanted && c->epoch_step < steps ? run_checkpoint(s, false, err) : 0;
}

bool run_has_all_steps(const struct session *s)
{
    return s->cfg->max_steps && s->cursor.step >= s->cfg->max_steps;
}

/* Draw the epoch's order; skip the part that earlier attempts have trained on. */
static void enter_epoch(struct session *s)
{
    train_epoch(&s->train, s->cursor.epoch - 1);
    train_skip(&s->train, s->cursor.consumed);
    if (!s->cursor.consumed)
        return;
    s->train.mean_sum = s->sums[0];
    s->train.own_sum = s->sums[1 + s->comm->rank];
}

int run_epoch(struct session *s, uint32_t *stop, bool *ended, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct cursor *c = &s->cursor;
    struct schedule_spec schedule = optim_schedule(&cfg->schedule, cfg->epochs, cursor_steps(c));
    int64_t start = session_now_ms(s);
    int64_t consumed = c->consumed;
    struct train_result r;
    double own = 0;  /* this rank's losses */
    double mean = 0; /* mean of all ranks' losses */

    enter_epoch(s);
    int64_t steps = c->epoch_step + sampler_steps(&s->train.p.sampler, cfg->batch_size);
    report_epoch(s->report, c->step - c->epoch_step, steps);
    *ended = c->epoch_step == steps;
    if (*ended || run_has_all_steps(s)) /* an earlier attempt printed the lines of this epoch */
        return 0;
    run_print_epoch(s, c->epoch, "epoch", cfg->lines.epoch_start, NAN);
    for (int64_t taken = 0; c->epoch_step < steps && !*stop; taken++) {
        if (run_has_all_steps(s))
            break;
        s->lr = optim_rate(&cfg->optimizer, &schedule, s->pipeline.at.replicas, c->epoch, cursor_time(c));
        s->train.raise = saver_flags(&s->saver, c->step + 1);
        s->train.exact = is_exact(s, steps);
        if (train_step(&s->train, taken, s->lr, &r, err))
            return -1;
        rank_state_step(s->slot);
        if (r.flags & COLLECTIVES_NONFINITE)
            return not_finite(r.loss, c->epoch, c->epoch_step + 1 - r.back, c->step + 1 - r.back, err);
        if (after_step(s, steps, taken + 1, &r, stop, err))
            return -1;
        if (r.flags & STOP)
            run_print_stop(s, *stop = r.flags & STOP, NULL);
    }
    if (train_sums(&s->train, &own, &mean, err))
        return -1;
    *ended = c->epoch_step == steps;
    s->times.train_s += session_seconds_since(s, start);
    s->times.samples += c->consumed - consumed;
    run_print_epoch(s, c->epoch, "epoch_end", cfg->lines.epoch_end, own);
    if (s->comm->rank == 0)
        run_print_epoch(s, c->epoch, "epoch_end", cfg->lines.epoch_all, mean);
    return 0;
}
