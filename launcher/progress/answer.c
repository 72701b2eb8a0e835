/* answer.c - write what is known of a training as JSON and as Prometheus text. */
#include "launcher/progress/answer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/contract.h"

#include <inttypes.h>
#include <math.h>

/* A number that both texts have. */
struct figure {
    const char *member; /* of the JSON object; NULL: not among those that may be absent */
    const char *metric, *type, *help;
    double scale; /* of the metric to the member */
    double value; /* NAN: not known */
};

enum { FIGURES = 10 };

static double count_of(int64_t count)
{
    return count < 0 ? NAN : (double)count;
}

static void list_figures(const struct answer *a, struct figure out[static FIGURES])
{
    const struct progress *p = &a->progress;
    const struct figure rows[FIGURES] = {
        {"step", "step", "gauge", "Step that the training has reached", 1, count_of(p->step)},
        {"totalSteps", "total_steps", "gauge", "Steps of the whole training", 1, count_of(p->total_steps)},
        {"epoch", "epoch", "gauge", "Epoch that is under way; the first one is 1", 1, count_of(p->epoch)},
        {"totalEpochs", "total_epochs", "gauge", "Epochs of the whole training", 1,
         count_of(p->total_epochs)},
        {"percent", "progress_ratio", "gauge", "Part of the training that is done, 0 to 1", 0.01, p->percent},
        {"etaSeconds", "eta_seconds", "gauge", "Estimated time left", 1,
         p->eta_ms < 0 ? NAN : floor((double)p->eta_ms / 1000)},
        {"loss", "loss", "gauge", "Last loss that was printed", 1, p->loss},
        {"samplesPerSecond", "samples_per_second", "gauge", "Samples that the training takes per second", 1,
         p->samples_per_second},
        {NULL, "restarts_total", "counter", "Restarts of the ranks by their launcher", 1,
         count_of(a->restarts)},
        {NULL, "attempt", "gauge", "Number of the job's attempt", 1, count_of(a->attempt)},
    };

    for (int i = 0; i < FIGURES; i++)
        out[i] = rows[i];
}

/* A whole number with all its digits, another with six. */
static void put_number(struct buf *out, double value)
{
    struct err full;

    (void)buf_printf(out, &full, fabs(value) < 1e16 && value == floor(value) ? "%.0f" : "%.6g", value);
}

static bool has_straggler(const struct answer *a)
{
    return a->straggler_rank >= 0 && isfinite(a->straggler_ratio);
}

void answer_progress(const struct answer *a, struct buf *out)
{
    char time[CLOCK_RFC3339_BYTES] = "";
    struct figure figures[FIGURES];
    struct err full;

    if (a->progress.wall_ms)
        clock_rfc3339(a->progress.wall_ms, false, time);
    (void)buf_printf(
        out, &full, "{\"job\": \"%s\", \"attempt\": %" PRId64 ", \"restarts\": %" PRId64 ", \"time\": \"%s\"",
        contract_job_mark(a->job_uid), a->attempt, a->restarts, time);
    list_figures(a, figures);
    for (int i = 0; i < FIGURES; i++)
        if (figures[i].member && isfinite(figures[i].value)) {
            (void)buf_printf(out, &full, ", \"%s\": ", figures[i].member);
            put_number(out, figures[i].value);
        }
    if (has_straggler(a)) {
        (void)buf_printf(out, &full,
                         ", \"straggler\": {\"rank\": %" PRId64 ", \"ratio\": ", a->straggler_rank);
        put_number(out, a->straggler_ratio);
        (void)buf_puts(out, "}", &full);
    }
    (void)buf_puts(out, "}\n", &full);
}

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    struct err full;

    (void)buf_printf(out, &full, "# HELP torchkeeper_training_%s %s.\n# TYPE torchkeeper_training_%s %s\n",
                     name, help, name, type);
}

void answer_metrics(const struct answer *a, struct buf *out)
{
    struct figure figures[FIGURES];
    struct err full;

    list_figures(a, figures);
    for (int i = 0; i < FIGURES; i++)
        if (isfinite(figures[i].value)) {
            put_head(out, figures[i].metric, figures[i].type, figures[i].help);
            (void)buf_printf(out, &full, "torchkeeper_training_%s ", figures[i].metric);
            put_number(out, figures[i].value * figures[i].scale);
            (void)buf_puts(out, "\n", &full);
        }
    if (has_straggler(a)) {
        put_head(out, "straggler_ratio", "gauge", "Step time of the slowest rank to the median of all");
        (void)buf_printf(out, &full, "torchkeeper_training_straggler_ratio{rank=\"%" PRId64 "\"} ",
                         a->straggler_rank);
        put_number(out, a->straggler_ratio);
        (void)buf_puts(out, "\n", &full);
    }
}
