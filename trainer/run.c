/* run.c - the epochs, and what is left behind. */
#include "trainer/run.h"

#include "common/contract.h"
#include "trainer/describe.h"
#include "trainer/evaluate.h"
#include "trainer/rig.h"
#include "trainer/save.h"

#include <math.h>

static double seconds_since(const struct rig *s, int64_t start_ms)
{
    const struct clock *c = &s->env->clock;

    return (double)(c->mono_ms(c->ctx) - start_ms) / 1000;
}

static int64_t now_ms(const struct rig *s)
{
    return s->env->clock.mono_ms(s->env->clock.ctx);
}

static int64_t log_interval(const struct config *cfg, int world)
{
    int64_t n = cfg->log_interval ? cfg->log_interval : cfg->log_interval_all_ranks / world;

    return n > 0 ? n : 1;
}

static struct evaluate_parts part_of(struct rig *s, bool test)
{
    const struct dataset *set = &s->data.set;
    struct pipeline *pipeline = &s->pipeline;
    struct evaluate_parts p = {.comm = s->comm,
                               .ctx = s->ctx,
                               .pipeline = pipeline,
                               .loss = s->cfg->loss,
                               .items = test ? set->test.items : s->split.second_items,
                               .timeout_ms = s->timeout_ms};

    feed_init(&p.feed, set, test, test ? NULL : s->split.second, &s->cfg->data);
    p.feed.vocab = pipeline->output.channels;
    return p;
}

static int validate(struct rig *s, int64_t epoch, struct err *err)
{
    struct evaluate_parts p = part_of(s, false);
    struct evaluate_result r;
    int64_t start = now_ms(s);

    if (!p.items)
        return 0;
    if (evaluate(&p, &r, err))
        return -1;
    report_val(s->report, epoch, r.loss, r.accuracy);
    s->times.val_s += seconds_since(s, start);
    return 0;
}

static int not_finite(float loss, int64_t epoch, int64_t step, int64_t global_step, struct err *err)
{
    return err_set(err, ERR_FATAL, "the loss is %s in epoch %lld, batch %lld (step %lld): try a lower --lr",
                   isinf(loss) ? "infinite" : "not a number", (long long)epoch, (long long)step,
                   (long long)global_step);
}

/* This rank's own line about an epoch (from 1). */
static void say_epoch(struct rig *s, int64_t epoch, const char *event, const char *text, double loss)
{
    struct lines_values v = rig_lines(s, epoch - 1);

    v.loss = loss;
    report_line(s->report, s->env->out, (enum log_format)s->cfg->log_format, event, text, &v);
}

/* All ranks; rank 0 writes. */
static int save(struct rig *s, struct err *err)
{
    struct model *whole;

    if (pipeline_whole(&s->pipeline, &whole, err))
        return -1;
    if (s->comm->rank == 0 && save_weights(s->cfg->save_path, whole, err))
        return err_wrap(err, "--save_path");
    return 0;
}

/* After epochs 0, n, 2n, ... as the lines count them. */
static int save_epoch(struct rig *s, int64_t epoch, struct err *err)
{
    const struct config *cfg = s->cfg;

    if (!s->saves || !s->save_every || (epoch - 1) % s->save_every != 0)
        return 0;
    if (save(s, err))
        return -1;
    if (s->comm->rank == 0)
        say_epoch(s, epoch, "saved", cfg->lines.saved, NAN);
    return 0;
}

/* A checkpoint, by all ranks; one that cannot be written is told, and training goes on. */
static int checkpoint(struct rig *s, bool last, struct err *ret)
{
    struct snapshot all = rig_snapshot(s);
    struct err err = {0};
    int64_t before = s->saver.last_step;

    if (rig_gather(s, ret))
        return -1;
    all.lr = s->lr;
    int failed = saver_save(&s->saver, &all, &err);
    rig_gathered(s);
    if (failed) {
        err_wrap(&err, "no checkpoint written: --ckpt_dir");
        report_note(s->report, true, err.msg);
    } else if (s->saver.last_step != before) {
        report_checkpoint(s->report, s->cfg->ckpt_dir, s->cursor.step, last, !s->run_id.later_attempt);
    }
    return 0;
}

/* Weights as histograms and images, when they are asked for. */
static void describe_step(struct rig *s)
{
    const struct config *cfg = s->cfg;
    struct events *events = report_events(s->report);
    int64_t step = s->cursor.step;
    struct err err;

    if (!events)
        return;
    if ((cfg->log_histograms && step % cfg->log_histograms == 0 &&
         describe_weights(events, s->model, step, &err)) ||
        (cfg->log_images && step % cfg->log_images == 0 &&
         describe_filters(events, s->model, &cfg->model.input, step, &err)))
        report_events_failed(s->report, &err);
}

/* What a step leaves behind: how far we are, and what is told about it. */
static int after_step(struct rig *s, int64_t steps, int64_t taken, const struct train_result *r,
                      struct err *err)
{
    struct cursor *c = &s->cursor;
    int64_t len = sampler_len(&s->train.p.sampler);

    c->step++;
    c->epoch_step++;
    c->consumed =
        s->train.p.sampler.first +
        (taken * s->cfg->batch_size < len ? taken * s->cfg->batch_size : len) * s->pipeline.at.replicas;
    if (c->epoch_step % log_interval(s->cfg, s->pipeline.at.replicas) == 0)
        report_step(s->report, c->epoch, c->epoch_step, (double)r->loss);
    report_progress(s->report, c->epoch, c->epoch_step, (double)r->loss);
    describe_step(s);
    s->save_due = s->save_due || saver_due(&s->saver, c->step, r->flags);
    /* Behind an epoch's last step validation comes first: a resumed run need not do it again. */
    if (s->save_due && c->epoch_step < steps) {
        s->save_due = false;
        return checkpoint(s, false, err);
    }
    return 0;
}

/* What is left of the cursor's epoch, or less of it: *stop says why, *ended whether it is over. */
static int run_epoch(struct rig *s, uint32_t *stop, bool *ended, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct cursor *c = &s->cursor;
    struct schedule_spec schedule = optim_schedule(&cfg->schedule, cfg->epochs, rig_steps(s));
    int64_t start = now_ms(s);
    int64_t consumed = c->consumed;
    struct train_result r;
    double own = 0;  /* this rank's losses */
    double mean = 0; /* those of all */

    say_epoch(s, c->epoch, "epoch", cfg->lines.epoch_start, NAN);
    train_epoch(&s->train, c->epoch - 1);
    train_skip(&s->train, consumed);
    int64_t steps = c->epoch_step + sampler_steps(&s->train.p.sampler, cfg->batch_size);
    report_epoch(s->report, c->epoch, c->step - c->epoch_step, steps);
    for (int64_t taken = 0; c->epoch_step < steps && !*stop; taken++) {
        if (cfg->max_steps && c->step >= cfg->max_steps)
            break;
        s->lr = optim_rate(&cfg->optimizer, &schedule, s->pipeline.at.replicas, c->epoch, s->optim.step);
        s->train.raise = saver_flags(&s->saver);
        if (train_step(&s->train, taken, s->lr, &r, err))
            return -1;
        own += r.own;
        mean += (double)r.loss;
        if (r.flags & COLLECTIVES_NONFINITE)
            return not_finite(r.loss, c->epoch, c->epoch_step + 1, c->step + 1, err);
        if (after_step(s, steps, taken + 1, &r, err))
            return -1;
        *stop = r.flags & (COLLECTIVES_STOP_TERM | COLLECTIVES_STOP_INT);
        if (*stop)
            report_stop(s->report, *stop & COLLECTIVES_STOP_TERM ? "SIGTERM" : "SIGINT", c->epoch,
                        c->epoch_step);
    }
    *ended = c->epoch_step == steps;
    s->times.train_s += seconds_since(s, start);
    s->times.samples += c->consumed - consumed;
    say_epoch(s, c->epoch, "epoch_end", cfg->lines.epoch_end, own);
    if (s->comm->rank == 0)
        say_epoch(s, c->epoch, "epoch_end", cfg->lines.epoch_all, mean);
    return 0;
}

/* Behind an epoch: validation, exports, the checkpoint that waited for them. */
static int end_epoch(struct rig *s, struct err *err)
{
    struct cursor *c = &s->cursor;

    if (!c->validated && (validate(s, c->epoch, err) || save_epoch(s, c->epoch, err)))
        return -1;
    c->validated = true;
    if (s->save_due && checkpoint(s, false, err))
        return -1;
    s->save_due = false;
    *c = (struct cursor){.epoch = c->epoch + 1, .step = c->step};
    return 0;
}

/* All ranks leave together: one that is seen to go takes the others with it, rank 0 in the middle of its checkpoint. */
static int stop_together(struct rig *s, struct err *err)
{
    return checkpoint(s, true, err) || s->comm->barrier(s->comm, s->timeout_ms, err) ? -1 : 0;
}

static int train_all(struct rig *s, uint32_t *stop, struct err *err)
{
    bool ended = true;

    s->times.startup_s = seconds_since(s, s->env->started_ms);
    while (s->cursor.epoch <= s->cfg->epochs && !*stop && ended) {
        if (run_epoch(s, stop, &ended, err) || (!*stop && ended && end_epoch(s, err)))
            return -1;
    }
    return *stop ? stop_together(s, err) : 0;
}

static int finish(struct rig *s, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct evaluate_parts p = part_of(s, true);
    struct evaluate_result r;

    if (p.items && (cfg->test || cfg->eval_only)) {
        if (evaluate(&p, &r, err))
            return -1;
        report_test(s->report, s->cursor.step, r.loss, r.accuracy);
    }
    if (s->saves && !s->save_every && save(s, err))
        return -1;
    if (!cfg->eval_only)
        report_times(s->report, &s->times);
    return 0;
}

static int exit_code_of(const struct err *err, bool set_up_done)
{
    if (err->kind == ERR_INVALID || err->kind == ERR_NOT_FOUND)
        return set_up_done ? EXIT_CODE_ERROR : EXIT_CODE_USAGE;
    return collectives_exit_code(err);
}

int run(const struct config *cfg, const struct run_env *env, struct run_result *ret, struct err *err)
{
    cleanup_rig struct rig s;
    uint32_t stop = 0;

    *ret = (struct run_result){.rank = -1};
    if (rig_open(&s, cfg, env, err)) {
        ret->rank = s.comm ? s.comm->rank : -1;
        ret->exit_code = exit_code_of(err, false);
        return -1;
    }
    ret->rank = s.comm->rank;
    if ((!cfg->eval_only && train_all(&s, &stop, err)) || (!stop && finish(&s, err))) {
        ret->exit_code = exit_code_of(err, true);
        return -1;
    }
    (void)report_close(TAKE(s.report), &ret->warning);
    if (stop)
        ret->exit_code = stop_exit_code(stop);
    return 0;
}
