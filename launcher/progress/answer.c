/* answer.c - format the progress of a training as JSON and as Prometheus text, and reply to HTTP requests. */
#include "launcher/progress/answer.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/contract.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number of both the JSON and the Prometheus text. */
struct figure {
    const char *member; /* name in the JSON object; NULL: written separately, always present */
    const char *metric, *type, *help;
    double scale; /* metric = member * scale */
    double value; /* NAN: not known */
};

enum { FIGURES = 10 };

static double count_of(int64_t count)
{
    return count < 0 ? NAN : (double)count;
}

static void list_figures(const struct answer *a, struct figure out[static FIGURES])
{
    const struct progress_seen *p = &a->progress.now;
    const struct figure rows[FIGURES] = {
        {"step", "step", "gauge", "Step that the training has reached", 1, count_of(p->step)},
        {"totalSteps", "total_steps", "gauge", "Steps of the whole training", 1, count_of(p->total_steps)},
        {"epoch", "epoch", "gauge", "Epoch that is under way; the first one is 1", 1, count_of(p->epoch)},
        {"totalEpochs", "total_epochs", "gauge", "Epochs of the whole training", 1,
         count_of(p->total_epochs)},
        {"percent", "progress_ratio", "gauge", "Part of the training that is done, 0 to 1", 0.01, p->percent},
        {"etaSeconds", "eta_seconds", "gauge", "Estimated time left", 1,
         a->progress.eta_ms < 0 ? NAN : floor((double)a->progress.eta_ms / 1000)},
        {"loss", "loss", "gauge", "Last loss that was printed", 1, p->loss},
        {"samplesPerSecond", "samples_per_second", "gauge", "Samples that the training takes per second", 1,
         p->samples_per_second},
        {NULL, "restarts_total", "counter", "Restarts of the ranks by their launcher", 1,
         count_of(a->restarts)},
        {NULL, "attempt", "gauge", "Number of the job's attempt", 1, count_of(a->attempt)},
    };

    memcpy(out, rows, sizeof(rows));
}

/* Write a whole number with all digits, another with six. */
static void put_number(struct buf *out, double value)
{
    buf_printf(out, NULL, fabs(value) < 1e16 && value == floor(value) ? "%.0f" : "%.6g", value);
}

static bool has_straggler(const struct answer *a)
{
    return a->straggler_rank >= 0 && isfinite(a->straggler_ratio);
}

void answer_progress(const struct answer *a, struct buf *out)
{
    char time[CLOCK_RFC3339_BYTES] = "";
    struct figure figures[FIGURES];

    if (a->progress.wall_ms)
        clock_rfc3339(a->progress.wall_ms, false, time);
    buf_printf(out, NULL,
               "{\"job\": \"%s\", \"attempt\": %" PRId64 ", \"restarts\": %" PRId64 ", \"time\": \"%s\"",
               contract_job_mark(a->job_uid), a->attempt, a->restarts, time);
    list_figures(a, figures);
    for (int i = 0; i < FIGURES; i++)
        if (figures[i].member && isfinite(figures[i].value)) {
            buf_printf(out, NULL, ", \"%s\": ", figures[i].member);
            put_number(out, figures[i].value);
        }
    if (has_straggler(a)) {
        buf_printf(out, NULL, ", \"straggler\": {\"rank\": %" PRId64 ", \"ratio\": ", a->straggler_rank);
        put_number(out, a->straggler_ratio);
        buf_puts(out, "}", NULL);
    }
    buf_puts(out, "}\n", NULL);
}

static void put_metric(struct buf *out, const struct figure *f, const char *labels)
{
    char name[64];

    snprintf(name, sizeof(name), "torchkeeper_training_%s", f->metric);
    buf_printf(out, NULL, "# HELP %s %s.\n# TYPE %s %s\n%s%s ", name, f->help, name, f->type, name, labels);
    put_number(out, f->value * f->scale);
    buf_puts(out, "\n", NULL);
}

void answer_metrics(const struct answer *a, struct buf *out)
{
    const struct figure straggler = {NULL,    "straggler_ratio",
                                     "gauge", "Step time of the slowest rank to the median of all",
                                     1,       a->straggler_ratio};
    struct figure figures[FIGURES];
    char labels[40];

    list_figures(a, figures);
    for (int i = 0; i < FIGURES; i++)
        if (isfinite(figures[i].value))
            put_metric(out, &figures[i], "");
    snprintf(labels, sizeof(labels), "{rank=\"%" PRId64 "\"}", a->straggler_rank);
    if (has_straggler(a))
        put_metric(out, &straggler, labels);
}

/* Write the body for a request line such as "GET /progress HTTP/1.1", and its type. Returns the status. */
static const char *answer_line(const struct answer *a, struct sv line, const char **type, struct buf *body)
{
    struct sv method = {0}, target = {0}, path = {0};

    if (!sv_next(&line, ' ', &method) || !sv_next(&line, ' ', &target) || !sv_starts(line, "HTTP/1.") ||
        !sv_starts(target, "/"))
        return "400 Bad Request";
    if (!sv_eq(method, "GET") && !sv_eq(method, "HEAD"))
        return "405 Method Not Allowed";
    sv_next(&target, '?', &path);
    if (sv_eq(path, "/progress")) {
        *type = "application/json";
        answer_progress(a, body);
    } else if (sv_eq(path, "/metrics")) {
        *type = "text/plain; version=0.0.4; charset=utf-8";
        answer_metrics(a, body);
    } else
        return "404 Not Found";
    return "200 OK";
}

bool answer_reply(const struct answer *a, struct sv request, struct buf *out)
{
    cleanup_buf struct buf body = BUF_INIT(ANSWER_BYTES);
    const char *status = "431 Request Header Fields Too Large", *type = "text/plain; charset=utf-8";
    const bool head = sv_starts(request, "HEAD ");
    struct sv line = {0};

    if (memmem(request.p, request.len, "\r\n\r\n", 4)) {
        sv_next(&request, '\r', &line);
        status = answer_line(a, line, &type, &body);
    } else if (request.len < REPLY_REQUEST_BYTES)
        return false;
    if (!body.len)
        buf_printf(&body, NULL, "%s\n", status);
    buf_printf(out, NULL,
               "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
               "%sConnection: close\r\n\r\n%s",
               status, type, body.len, sv_starts(sv_from(status), "405") ? "Allow: GET, HEAD\r\n" : "",
               head ? "" : buf_str(&body));
    return true;
}
