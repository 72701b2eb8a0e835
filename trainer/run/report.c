/* report.c - print a run's progress: text or JSON lines, a bar on a terminal, TensorBoard scalars. */
#include "trainer/run/report.h"

#include "common/buf.h"
#include "common/json.h"
#include "common/memory.h"
#include "trainer/events/events.h"
#include "trainer/run/bar.h"
#include "trainer/run/progress_writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOTE_BYTES_MAX = 8 * ERR_MSG_BYTES };

struct report {
    struct report_options o;
    struct events *events; /* NULL: none */
    struct err events_err; /* the first failure; kind ERR_NONE: none */
    struct pace pace;
    struct bar bar;
    struct progress_writer progress;
    int64_t first_step; /* steps of the run before the epoch */
    int64_t steps;      /* steps of the epoch */
};

struct report *report_open(const struct report_options *o, struct err *err)
{
    cleanup_free struct report *r = memory_must(calloc(1, sizeof(*r)));
    struct err no_progress;

    r->o = *o;
    r->bar.out = o->bar;
    if (o->log_dir) {
        char host[256] = "localhost";
        gethostname(host, sizeof(host) - 1);
        struct events_options e = {.log_dir = o->log_dir,
                                   .host = host,
                                   .pid = getpid(),
                                   .fresh = o->resumed_step < 0,
                                   .purge_step =
                                       o->resumed_step < 0 && o->later_attempt ? 1 : o->resumed_step + 1,
                                   .flush_ms = EVENTS_FLUSH_MS,
                                   .clock = o->clock};
        r->events = events_open(&e, err);
        if (!r->events) {
            err_wrap(err, "--log_dir");
            return NULL;
        }
        if (events_removed(r->events))
            report_note(r, false, "--log_dir: the event files of trainer's ended runs were removed");
    }
    if (progress_writer_open(&r->progress, o->progress, &no_progress))
        report_note(r, true, no_progress.msg);
    return TAKE(r);
}

void report_hide(struct report *r)
{
    if (r)
        bar_hide(&r->bar);
}

static void end(struct report *r)
{
    fputs(r->o.format == LOG_FORMAT_JSON ? "}\n" : "\n", r->o.out);
    fflush(r->o.out);
}

/* In JSON format: begin a line, {"time":"...","event":"train", and return true. */
static bool begin_json(struct report *r, const char *event)
{
    char now[CLOCK_RFC3339_BYTES];

    bar_hide(&r->bar);
    if (r->o.format != LOG_FORMAT_JSON)
        return false;
    clock_rfc3339(r->o.clock.wall_ms(r->o.clock.ctx), true, now);
    fprintf(r->o.out, "{\"time\":\"%s\",\"event\":\"%s\"", now, event);
    return true;
}

static void note_failure(struct report *r, const struct err *err)
{
    if (!r->events_err.kind)
        r->events_err = *err;
}

static void put_scalar(struct report *r, const char *tag, int64_t step, double value)
{
    struct err err;

    if (r->events && events_scalar(r->events, tag, step, (float)value, &err))
        note_failure(r, &err);
}

void report_histograms(struct report *r, const struct model *m, int64_t global_step)
{
    char tag[PARAM_NAME_BYTES + 16];
    struct err err;

    for (int i = 0; r && r->events && i < m->rows; i++) {
        snprintf(tag, sizeof(tag), "weights/%s", m->row[i].name);
        if (events_histogram(r->events, tag, global_step, m->values + m->row[i].offset, m->row[i].len, &err))
            note_failure(r, &err);
    }
}

/* The step of the run for a step of the epoch. */
static int64_t global_step_of(const struct report *r, int64_t step)
{
    return r->first_step + step;
}

/* Whether the preset's own lines replace this text. */
static bool is_silent(const struct report *r)
{
    return r->o.own_lines && r->o.format == LOG_FORMAT_TEXT;
}

void report_start(struct report *r, const struct config *cfg, size_t parameters, int world,
                  const char *transport, const char *isa, int threads, const struct report_times *t)
{
    char parts[48] = "";

    if (!r || is_silent(r))
        return;
    if (cfg->micro_batches > 1)
        snprintf(parts, sizeof(parts), " in %lld micro-batches", (long long)cfg->micro_batches);
    if (begin_json(r, "start"))
        fprintf(r->o.out,
                ",\"model\":\"%s\",\"parameters\":%zu,\"ranks\":%d,\"transport\":\"%s\",\"batch_size\":%lld,"
                "\"micro_batches\":%lld,\"precision\":\"%s\",\"threads\":%d,\"isa\":\"%s\",\"epochs\":%lld,"
                "\"steps\":%lld,\"met_s\":%.3f,\"data_s\":%.3f,\"data_kept\":%s",
                cfg->name, parameters, world, transport, (long long)cfg->batch_size,
                (long long)cfg->micro_batches, config_precisions[cfg->precision], threads, isa,
                (long long)r->o.epochs, (long long)r->o.steps, t->met_s, t->data_s,
                t->data_kept ? "true" : "false");
    else
        fprintf(r->o.out,
                "%s: %zu parameters, %d rank%s (%s), batch %lld per rank%s, %d thread%s per rank (%s%s%s)",
                cfg->name, parameters, world, world == 1 ? "" : "s", transport, (long long)cfg->batch_size,
                parts, threads, threads == 1 ? "" : "s", isa, cfg->precision ? ", " : "",
                cfg->precision ? config_precisions[cfg->precision] : "");
    end(r);
}

void report_line(struct report *r, FILE *out, enum log_format format, const char *event, const char *text,
                 const struct lines_values *v)
{
    if (!text)
        return;
    report_hide(r);
    if (format != LOG_FORMAT_JSON) {
        lines_print(out, text, v);
    } else if (r && begin_json(r, event)) {
        fprintf(out, ",\"epoch\":%lld,\"epochs\":%lld", (long long)v->epoch + 1, (long long)v->epochs);
        if (!isnan(v->loss))
            fprintf(out, ",\"loss_sum\":%.9g", v->loss);
        end(r);
    }
}

void report_step(struct report *r, int64_t epoch, int64_t step, double loss)
{
    if (!r)
        return;
    int64_t global_step = global_step_of(r, step);
    put_scalar(r, "train/loss", global_step, loss);
    if (is_silent(r) && !r->o.steps_asked)
        return;
    if (begin_json(r, "train"))
        fprintf(
            r->o.out,
            ",\"epoch\":%lld,\"epochs\":%lld,\"step\":%lld,\"steps\":%lld,\"global_step\":%lld,\"loss\":%.9g",
            (long long)epoch, (long long)r->o.epochs, (long long)step, (long long)r->steps,
            (long long)global_step, loss);
    else
        fprintf(r->o.out, "epoch %lld/%lld, batch %5lld/%lld with loss: %.4f", (long long)epoch,
                (long long)r->o.epochs, (long long)step, (long long)r->steps, loss);
    end(r);
}

void report_progress(struct report *r, int64_t epoch, int64_t step, double loss)
{
    struct err err;

    if (!r)
        return;
    if (r->events && events_tick(r->events, &err))
        note_failure(r, &err);
    const int64_t now_ms = r->o.clock.mono_ms(r->o.clock.ctx);
    struct pace_view v = {.epoch = epoch,
                          .epochs = r->o.epochs,
                          .step = step,
                          .steps = r->steps,
                          .done = global_step_of(r, step),
                          .loss = loss};
    const int64_t all = v.done + v.steps - step + (r->o.epochs - epoch) * r->o.steps;
    v.total = r->o.max_steps && r->o.max_steps < all ? r->o.max_steps : all;
    pace_step(&r->pace, now_ms, r->o.samples_per_step, &v);
    bar_step(&r->bar, now_ms, &v);
    progress_writer_step(&r->progress, now_ms, &v);
}

void report_stop(struct report *r, const char *signal_name, const char *during, int64_t epoch, int64_t step)
{
    if (!r)
        return;
    if (begin_json(r, "stop"))
        fprintf(r->o.out, ",\"signal\":\"%s\",\"during\":\"%s\",\"epoch\":%lld,\"step\":%lld", signal_name,
                during ? during : "training", (long long)epoch, (long long)step);
    else if (during)
        fprintf(r->o.out, "stopped by %s during the %s", signal_name, during);
    else
        fprintf(r->o.out, "stopped by %s after epoch %lld, batch %lld/%lld", signal_name, (long long)epoch,
                (long long)step, (long long)r->steps);
    end(r);
}

void report_speed(struct report *r, int64_t step, const struct report_speed *v)
{
    const struct {
        const char *tag;
        double value;
    } all[] = {{"lr", v->lr}, {"grad_norm", v->grad_norm}, {"tokens_per_second", v->tokens_per_s}};

    if (!r)
        return;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (!isnan(all[i].value))
            put_scalar(r, all[i].tag, global_step_of(r, step), all[i].value);
    if (r->o.format != LOG_FORMAT_JSON)
        return;
    (void)begin_json(r, "speed");
    fprintf(r->o.out, ",\"global_step\":%lld", (long long)global_step_of(r, step));
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (isfinite(all[i].value))
            fprintf(r->o.out, ",\"%s\":%.9g", all[i].tag, all[i].value);
    end(r);
}

/* Print "epoch 1/2", and the batch unless the epoch is over. */
static void say_where(struct report *r, int64_t epoch, int64_t step)
{
    fprintf(r->o.out, "epoch %lld/%lld", (long long)epoch, (long long)r->o.epochs);
    if (step < r->steps)
        fprintf(r->o.out, ", batch %5lld/%lld", (long long)step, (long long)r->steps);
}

/* The end of a line about an evaluation, and its scalars; no accuracy if targets are values. */
static void end_evaluation(struct report *r, const char *part, int64_t global_step, double loss,
                           double accuracy)
{
    const bool json = r->o.format == LOG_FORMAT_JSON;
    char tag[32];

    if (json)
        fprintf(r->o.out, ",\"global_step\":%lld,\"loss\":%.9g", (long long)global_step, loss);
    else
        fprintf(r->o.out, "%s loss: %.4f", part, loss);
    if (json && !isnan(accuracy))
        fprintf(r->o.out, ",\"accuracy\":%.9g", accuracy);
    else if (!isnan(accuracy))
        fprintf(r->o.out, ", %s accuracy: %.4f", part, accuracy);
    end(r);
    snprintf(tag, sizeof(tag), "%s/loss", part);
    put_scalar(r, tag, global_step, loss);
    snprintf(tag, sizeof(tag), "%s/accuracy", part);
    if (!isnan(accuracy))
        put_scalar(r, tag, global_step, accuracy);
}

void report_val(struct report *r, int64_t epoch, int64_t step, double loss, double accuracy)
{
    if (!r)
        return;
    if (begin_json(r, "val")) {
        fprintf(r->o.out, ",\"epoch\":%lld,\"epochs\":%lld", (long long)epoch, (long long)r->o.epochs);
    } else {
        say_where(r, epoch, step);
        fputs(" with ", r->o.out);
    }
    end_evaluation(r, "val", global_step_of(r, step), loss, accuracy);
}

void report_test(struct report *r, int64_t global_step, double loss, double accuracy)
{
    if (!r)
        return;
    (void)begin_json(r, "test");
    end_evaluation(r, "test", global_step, loss, accuracy);
}

void report_times(struct report *r, const struct report_times *t)
{
    if (!r || is_silent(r))
        return;
    double rate = t->train_s > 0 ? (double)t->samples / t->train_s : 0;
    if (begin_json(r, "times"))
        fprintf(r->o.out,
                ",\"startup_s\":%.3f,\"train_s\":%.3f,\"val_s\":%.3f,\"samples\":%lld,\"samples_per_s\":%.1f",
                t->startup_s, t->train_s, t->val_s, (long long)t->samples, rate);
    else
        fprintf(r->o.out,
                "training time: %.2f s (steps %.2f s, validation %.2f s), %.0f samples/s; start-up %.2f s",
                t->train_s + t->val_s, t->train_s, t->val_s, rate, t->startup_s);
    end(r);
}

void report_note(struct report *r, bool warning, const char *text)
{
    cleanup_buf struct buf quoted = BUF_INIT(NOTE_BYTES_MAX);
    struct err ignored;

    if (!r)
        return;
    if (begin_json(r, warning ? "warning" : "note")) {
        (void)!json_write_string(text, &quoted, &ignored); /* there is room for every message */
        fprintf(r->o.out, ",\"text\":%s", buf_str(&quoted));
    } else {
        fprintf(r->o.out, "%s%s", warning ? "warning: " : "", text);
    }
    end(r);
}

void report_epoch(struct report *r, int64_t first_step, int64_t steps)
{
    if (!r)
        return;
    r->first_step = first_step;
    r->steps = steps;
}

void report_checkpoint(struct report *r, const char *dir, int64_t step, bool last, bool hint)
{
    if (!r || (!last && r->o.format != LOG_FORMAT_JSON))
        return;
    if (begin_json(r, "checkpoint"))
        fprintf(r->o.out, ",\"global_step\":%lld", (long long)step);
    else
        fprintf(r->o.out, "checkpoint of step %lld saved in %s%s%s%s", (long long)step, dir,
                hint ? ": --resume " : "", hint ? dir : "", hint ? " resumes from it" : "");
    end(r);
}

int report_close(struct report *r, struct err *err)
{
    int rc = 0;

    if (!r)
        return 0;
    bar_hide(&r->bar);
    fflush(r->o.out);
    progress_writer_close(&r->progress);
    if (r->events && events_close(r->events, err))
        rc = err_wrap(err, "--log_dir");
    if (!rc && r->events_err.kind) {
        *err = r->events_err;
        rc = err_wrap(err, "--log_dir: some events may be missing");
    }
    free(r);
    return rc;
}
