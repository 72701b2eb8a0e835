/* run.c - the epochs, and what is left behind. */
#include "trainer/run.h"

#include "common/contract.h"
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
                               .items = test ? set->test_items : s->split.second_items,
                               .timeout_ms = s->timeout_ms};

    feed_init(&p.feed, test ? set->test_images : set->train_images,
              test ? set->test_labels : set->train_labels, test ? NULL : s->split.second,
              (size_t)set->rows * (size_t)set->cols, s->cfg->data.mean, s->cfg->data.std);
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
        say_epoch(s, epoch, "saved", cfg->lines.saved, 0);
    return 0;
}

/* One epoch (from 1), or less of it: *flags says why, *done counts the run's steps. */
static int run_epoch(struct rig *s, int64_t epoch, int64_t *done, uint32_t *flags, struct err *err)
{
    const struct config *cfg = s->cfg;
    int64_t steps = sampler_steps(&s->train.p.sampler, cfg->batch_size);
    int replicas = s->pipeline.at.replicas;
    int64_t interval = log_interval(cfg, replicas);
    struct schedule_spec schedule = optim_schedule(&cfg->schedule, cfg->epochs, steps);
    int64_t start = now_ms(s);
    struct train_result r;
    double own = 0;  /* this rank's losses */
    double mean = 0; /* those of all */

    say_epoch(s, epoch, "epoch", cfg->lines.epoch_start, 0);
    train_epoch(&s->train, epoch - 1);
    for (int64_t step = 1; step <= steps && !*flags; step++) {
        if (cfg->max_steps && *done == cfg->max_steps)
            break;
        double lr = optim_rate(&cfg->optimizer, &schedule, replicas, epoch, s->optim.step);
        if (train_step(&s->train, step - 1, lr, &r, err))
            return -1;
        ++*done;
        *flags = r.flags;
        own += r.own;
        mean += (double)r.loss;
        if (r.flags & COLLECTIVES_NONFINITE)
            return not_finite(r.loss, epoch, step, *done, err);
        if (step % interval == 0)
            report_step(s->report, epoch, step, (double)r.loss);
        report_progress(s->report, epoch, step, (double)r.loss);
        if (r.flags)
            report_stop(s->report, r.flags & COLLECTIVES_STOP_TERM ? "SIGTERM" : "SIGINT", epoch, step);
    }
    s->times.train_s += seconds_since(s, start);
    say_epoch(s, epoch, "epoch_end", cfg->lines.epoch_end, own);
    if (s->comm->rank == 0)
        say_epoch(s, epoch, "epoch_end", cfg->lines.epoch_all, mean);
    return 0;
}

static int train_all(struct rig *s, int64_t *done, uint32_t *flags, struct err *err)
{
    const struct config *cfg = s->cfg;
    int64_t steps = sampler_steps(&s->train.p.sampler, cfg->batch_size);

    s->times.startup_s = seconds_since(s, s->env->started_ms);
    for (int64_t epoch = 1; epoch <= cfg->epochs && !*flags; epoch++) {
        if (run_epoch(s, epoch, done, flags, err))
            return -1;
        if (*flags || *done < epoch * steps) /* a signal, or --max_steps */
            break;
        if (validate(s, epoch, err) || save_epoch(s, epoch, err))
            return -1;
    }
    int64_t per_rank = sampler_len(&s->train.p.sampler);
    int64_t rest = *done % steps * cfg->batch_size;
    s->times.samples =
        (*done / steps * per_rank + (rest < per_rank ? rest : per_rank)) * s->pipeline.at.replicas;
    return 0;
}

static int finish(struct rig *s, int64_t done, struct err *err)
{
    const struct config *cfg = s->cfg;
    struct evaluate_parts p = part_of(s, true);
    struct evaluate_result r;

    if (cfg->test || cfg->eval_only) {
        if (evaluate(&p, &r, err))
            return -1;
        report_test(s->report, done, r.loss, r.accuracy);
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
    int64_t done = 0;
    uint32_t flags = 0;

    *ret = (struct run_result){.rank = -1};
    if (rig_open(&s, cfg, env, err)) {
        ret->rank = s.comm ? s.comm->rank : -1;
        ret->exit_code = exit_code_of(err, false);
        return -1;
    }
    ret->rank = s.comm->rank;
    if ((!cfg->eval_only && train_all(&s, &done, &flags, err)) || (!flags && finish(&s, done, err))) {
        ret->exit_code = exit_code_of(err, true);
        return -1;
    }
    (void)report_close(TAKE(s.report), &ret->warning);
    if (flags)
        ret->exit_code = stop_exit_code(flags);
    return 0;
}
