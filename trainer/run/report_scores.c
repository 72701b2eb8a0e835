/* report_scores.c - print a run's evaluations, speed and times. */
#include "trainer/run/report_state.h"

#include <math.h>

void report_speed(struct report *r, int64_t epoch, int64_t step, const struct report_speed *v)
{
    const struct {
        const char *tag;
        double value;
    } all[] = {
        {"lr", v->lr}, {"grad_norm", v->grad_norm}, {"tokens_per_second", v->tokens_per_s}, {"mfu", v->mfu}};

    if (!r)
        return;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (!isnan(all[i].value))
            report_scalar(r, all[i].tag, report_global_step(r, epoch, step), all[i].value);
    if (r->o.format != LOG_FORMAT_JSON)
        return;
    report_begin_json(r, "speed");
    fprintf(r->o.out, ",\"global_step\":%lld", (long long)report_global_step(r, epoch, step));
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (isfinite(all[i].value))
            fprintf(r->o.out, ",\"%s\":%.9g", all[i].tag, all[i].value);
    report_end(r);
}

/* "epoch 1/2", and in its middle the batch. */
static void say_where(struct report *r, int64_t epoch, int64_t step)
{
    fprintf(r->o.out, "epoch %lld/%lld", (long long)epoch, (long long)r->o.epochs);
    if (step < report_steps_of(r, epoch))
        fprintf(r->o.out, ", batch %5lld/%lld", (long long)step, (long long)report_steps_of(r, epoch));
}

/* Behind a loss; where targets are values there is none. */
static void say_accuracy(struct report *r, const char *part, double accuracy)
{
    if (isnan(accuracy))
        return;
    if (r->o.format == LOG_FORMAT_JSON)
        fprintf(r->o.out, ",\"accuracy\":%.9g", accuracy);
    else
        fprintf(r->o.out, ", %s accuracy: %.4f", part, accuracy);
}

void report_val(struct report *r, int64_t epoch, int64_t step, double loss, double accuracy)
{
    if (!r)
        return;
    int64_t global_step = report_global_step(r, epoch, step);
    if (report_begin_json(r, "val"))
        fprintf(r->o.out, ",\"epoch\":%lld,\"epochs\":%lld,\"global_step\":%lld,\"loss\":%.9g",
                (long long)epoch, (long long)r->o.epochs, (long long)global_step, loss);
    else {
        say_where(r, epoch, step);
        fprintf(r->o.out, " with val loss: %.4f", loss);
    }
    say_accuracy(r, "val", accuracy);
    report_end(r);
    report_scalar(r, "val/loss", global_step, loss);
    if (!isnan(accuracy))
        report_scalar(r, "val/accuracy", global_step, accuracy);
}

void report_test(struct report *r, int64_t global_step, double loss, double accuracy)
{
    if (!r)
        return;
    if (report_begin_json(r, "test"))
        fprintf(r->o.out, ",\"global_step\":%lld,\"loss\":%.9g", (long long)global_step, loss);
    else
        fprintf(r->o.out, "test loss: %.4f", loss);
    say_accuracy(r, "test", accuracy);
    report_end(r);
    report_scalar(r, "test/loss", global_step, loss);
    if (!isnan(accuracy))
        report_scalar(r, "test/accuracy", global_step, accuracy);
}

void report_times(struct report *r, const struct report_times *t)
{
    if (!r || report_silent(r))
        return;
    double rate = t->train_s > 0 ? (double)t->samples / t->train_s : 0;
    if (report_begin_json(r, "times"))
        fprintf(r->o.out,
                ",\"startup_s\":%.3f,\"train_s\":%.3f,\"val_s\":%.3f,\"samples\":%lld,\"samples_per_s\":%.1f",
                t->startup_s, t->train_s, t->val_s, (long long)t->samples, rate);
    else
        fprintf(r->o.out,
                "training time: %.2f s (steps %.2f s, validation %.2f s), %.0f samples/s; start-up %.2f s",
                t->train_s + t->val_s, t->train_s, t->val_s, rate, t->startup_s);
    report_end(r);
}
