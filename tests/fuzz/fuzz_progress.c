/* fuzz_progress.c - the output of a training, in any pieces: the same observations, numbers within their bounds, and a
 * position that stays within them. The same bytes as a progress file. */
#include "fuzz_pieces.h"

#include "launcher/progress/progress.h"
#include "launcher/progress/progress_file.h"
#include "launcher/progress/recognise.h"

#include <math.h>

static void check_count(int64_t n)
{
    MUST(n >= -1 && n <= PROGRESS_COUNT_MAX);
}

static void check_percent(double percent)
{
    MUST(isnan(percent) || (percent >= 0 && percent <= 100));
}

static void check_seen(const struct progress_seen *s)
{
    check_count(s->step);
    check_count(s->total_steps);
    check_count(s->epoch);
    check_count(s->total_epochs);
    check_percent(s->percent);
    MUST(isnan(s->within) || (s->within >= 0 && s->within <= 1));
    MUST(!isinf(s->loss) && !isinf(s->samples_per_second));
    MUST(!(s->samples_per_second < 0));
}

static void check_progress(const struct progress *p)
{
    check_count(p->now.step);
    check_count(p->now.total_steps);
    check_count(p->now.epoch);
    check_count(p->now.total_epochs);
    check_percent(p->now.percent);
    MUST(p->eta_ms >= -1 && p->eta_ms <= PROGRESS_COUNT_MAX);
}

struct reader {
    struct progress progress;
    int64_t now_ms;
    struct buf *out;
};

static void seen(void *ctx, const struct progress_seen *s)
{
    struct reader *r = ctx;
    struct err err;

    check_seen(s);
    r->now_ms += 700;
    progress_take(&r->progress, s, false, r->now_ms, r->now_ms);
    check_progress(&r->progress);
    MUST(buf_printf(r->out, &err, "%lld %lld %g %g %d\n", (long long)s->step, (long long)s->epoch, s->loss,
                    r->progress.now.percent, s->download) == 0);
}

static int read_all(struct sv all, size_t piece, struct buf *out)
{
    struct recogniser r = {.len = 0};
    struct reader reader = {.out = out};

    progress_init(&reader.progress);
    for (struct sv next = pieces_next(&all, piece); next.len; next = pieces_next(&all, piece))
        recogniser_take(&r, next.p, next.len, seen, &reader);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct progress_seen s;
    struct progress p;

    pieces_check(data, size, read_all, false);
    if (progress_file_parse((struct sv){(const char *)data, size}, &s))
        check_seen(&s);
    progress_init(&p);
    progress_take(&p, &s, true, 1, 1);
    check_progress(&p);
    return 0;
}
