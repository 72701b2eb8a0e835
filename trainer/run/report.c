/* report.c - print a run's progress: text or JSON lines, a bar on a terminal, TensorBoard scalars. */
#include "trainer/run/report_state.h"

#include "trainer/events/events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct report *report_open(const struct report_options *o, struct err *err)
{
    cleanup_free struct report *r = calloc(1, sizeof(*r));
    struct err no_progress;

    if (!r) {
        err_memory(err, "no memory for the report");
        return NULL;
    }
    r->o = *o;
    r->bar.out = o->bar;
    if (o->log_dir) {
        char host[256] = "localhost";
        gethostname(host, sizeof(host) - 1);
        struct events_options e = {.log_dir = o->log_dir,
                                   .host = host,
                                   .pid = getpid(),
                                   .fresh = o->resumed_step < 0,
                                   .purge_step = o->resumed_step + 1,
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

/* The beginning of a JSON line: {"time":"...","event":"train" */
static void json_begin(struct report *r, const char *event)
{
    char now[CLOCK_RFC3339_BYTES];

    clock_rfc3339(r->o.clock.wall_ms(r->o.clock.ctx), true, now);
    fprintf(r->o.out, "{\"time\":\"%s\",\"event\":\"%s\"", now, event);
}

void report_end(struct report *r)
{
    fputs(r->o.format == LOG_FORMAT_JSON ? "}\n" : "\n", r->o.out);
    fflush(r->o.out);
}

bool report_begin_json(struct report *r, const char *event)
{
    bar_hide(&r->bar);
    if (r->o.format == LOG_FORMAT_JSON)
        json_begin(r, event);
    return r->o.format == LOG_FORMAT_JSON;
}

void report_scalar(struct report *r, const char *tag, int64_t step, double value)
{
    struct err err;

    if (r->events && events_scalar(r->events, tag, step, (float)value, &err) && !r->events_err.kind)
        r->events_err = err;
}

int64_t report_steps_of(const struct report *r, int64_t epoch)
{
    return r->epoch == epoch ? r->steps : r->o.steps;
}

int64_t report_global_step(const struct report *r, int64_t epoch, int64_t step)
{
    return (r->epoch == epoch ? r->first_step : (epoch - 1) * r->o.steps) + step;
}

bool report_silent(const struct report *r)
{
    return r->o.own_lines && r->o.format == LOG_FORMAT_TEXT;
}

void report_start(struct report *r, const struct config *cfg, size_t parameters, int world,
                  const char *transport, const char *isa, int threads, const struct report_times *t)
{
    char parts[48] = "";

    if (!r || report_silent(r))
        return;
    if (cfg->micro_batches > 1)
        snprintf(parts, sizeof(parts), " in %lld micro-batches", (long long)cfg->micro_batches);
    if (report_begin_json(r, "start"))
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
    report_end(r);
}

void report_line(struct report *r, FILE *out, enum log_format format, const char *event, const char *text,
                 const struct lines_values *v)
{
    if (!text)
        return;
    report_hide(r);
    if (format != LOG_FORMAT_JSON) {
        lines_print(out, text, v);
    } else if (r) {
        json_begin(r, event);
        fprintf(out, ",\"epoch\":%lld,\"epochs\":%lld", (long long)v->epoch + 1, (long long)v->epochs);
        if (!isnan(v->loss))
            fprintf(out, ",\"loss_sum\":%.9g", v->loss);
        report_end(r);
    }
}

void report_step(struct report *r, int64_t epoch, int64_t step, double loss)
{
    if (!r)
        return;
    int64_t global_step = report_global_step(r, epoch, step);
    report_scalar(r, "train/loss", global_step, loss);
    if (report_silent(r) && !r->o.steps_asked)
        return;
    if (report_begin_json(r, "train"))
        fprintf(
            r->o.out,
            ",\"epoch\":%lld,\"epochs\":%lld,\"step\":%lld,\"steps\":%lld,\"global_step\":%lld,\"loss\":%.9g",
            (long long)epoch, (long long)r->o.epochs, (long long)step, (long long)report_steps_of(r, epoch),
            (long long)global_step, loss);
    else
        fprintf(r->o.out, "epoch %lld/%lld, batch %5lld/%lld with loss: %.4f", (long long)epoch,
                (long long)r->o.epochs, (long long)step, (long long)report_steps_of(r, epoch), loss);
    report_end(r);
}

void report_progress(struct report *r, int64_t epoch, int64_t step, double loss)
{
    struct err err;

    if (!r)
        return;
    if (r->events && events_tick(r->events, &err) && !r->events_err.kind)
        r->events_err = err;
    const int64_t now_ms = r->o.clock.mono_ms(r->o.clock.ctx);
    struct pace_view v = {.epoch = epoch,
                          .epochs = r->o.epochs,
                          .step = step,
                          .steps = report_steps_of(r, epoch),
                          .done = report_global_step(r, epoch, step),
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
    if (report_begin_json(r, "stop"))
        fprintf(r->o.out, ",\"signal\":\"%s\",\"during\":\"%s\",\"epoch\":%lld,\"step\":%lld", signal_name,
                during ? during : "training", (long long)epoch, (long long)step);
    else if (during)
        fprintf(r->o.out, "stopped by %s during the %s", signal_name, during);
    else
        fprintf(r->o.out, "stopped by %s after epoch %lld, batch %lld/%lld", signal_name, (long long)epoch,
                (long long)step, (long long)report_steps_of(r, epoch));
    report_end(r);
}

/* Text inside a JSON string: what could break it becomes a space. */
static void put_text(struct report *r, const char *text)
{
    for (; *text; text++)
        fputc(*text == '"' || *text == '\\' || (unsigned char)*text < 0x20 ? ' ' : *text, r->o.out);
}

void report_note(struct report *r, bool warning, const char *text)
{
    if (!r)
        return;
    if (report_begin_json(r, warning ? "warning" : "note")) {
        fputs(",\"text\":\"", r->o.out);
        put_text(r, text);
        fputc('"', r->o.out);
    } else {
        fprintf(r->o.out, "%s%s", warning ? "warning: " : "", text);
    }
    report_end(r);
}

void report_epoch(struct report *r, int64_t epoch, int64_t first_step, int64_t steps)
{
    if (!r)
        return;
    r->epoch = epoch;
    r->first_step = first_step;
    r->steps = steps;
}

void report_checkpoint(struct report *r, const char *dir, int64_t step, bool last, bool hint)
{
    if (!r || (!last && r->o.format != LOG_FORMAT_JSON))
        return;
    if (report_begin_json(r, "checkpoint"))
        fprintf(r->o.out, ",\"global_step\":%lld", (long long)step);
    else
        fprintf(r->o.out, "checkpoint of step %lld saved in %s%s%s%s", (long long)step, dir,
                hint ? ": --resume " : "", hint ? dir : "", hint ? " goes on from it" : "");
    report_end(r);
}

struct events *report_events(struct report *r)
{
    return r ? r->events : NULL;
}

void report_events_failed(struct report *r, const struct err *err)
{
    if (!r->events_err.kind)
        r->events_err = *err;
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
