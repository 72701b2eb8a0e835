/* earlier.c - one paragraph for each failure of status.failures. */
#include "cli/logs/earlier.h"

#include "cli/logs/view.h"
#include "cli/shown.h"
#include "common/clock.h"

#include <string.h>

static int put(struct buf *out, const char *before, const char *text, struct err *err)
{
    if (!text || !text[0])
        return 0;
    return buf_puts(out, before, err) < 0 ? -1 : shown_line(out, sv_from(text), err);
}

static int put_head(const struct failure *f, struct buf *out, struct err *err)
{
    char when[CLOCK_RFC3339_BYTES];

    clock_rfc3339(f->time_ms, false, when);
    if (buf_printf(out, err, "attempt %d, %s", f->attempt, when) < 0 || put(out, ", pod ", f->pod, err) < 0 ||
        put(out, " on node ", f->node, err) < 0 ||
        (f->rank >= 0 && buf_printf(out, err, ", rank %d", f->rank) < 0) ||
        (f->exit_code >= 0 && buf_printf(out, err, ", exit code %d", f->exit_code) < 0) ||
        (f->signal && buf_printf(out, err, " (signal %d)", f->signal) < 0) ||
        put(out, ": ", f->reason, err) < 0)
        return -1;
    return buf_puts(out, "\n", err);
}

/* lastFailure is the newest of the failures, with more of its message. */
static const char *message_of(const struct jobstatus *st, const struct failure *f)
{
    const struct failure *last = st->last_failure;
    const bool same = last && last->attempt == f->attempt && last->time_ms == f->time_ms && last->pod &&
                      f->pod && !strcmp(last->pod, f->pod);

    return same ? last->message : f->message;
}

int earlier_print(const struct jobstatus *st, const regex_t *grep, struct buf *out, struct err *err)
{
    for (int i = 0; i < st->n_failures; i++) {
        const char *message = message_of(st, &st->failures[i]);
        struct sv rest = sv_from(message ? message : ""), line;
        bool has_head = !grep;
        if (has_head && put_head(&st->failures[i], out, err) < 0)
            return -1;
        while (rest.len && sv_next(&rest, '\n', &line)) {
            if (!view_wants(grep, line))
                continue;
            if ((!has_head && put_head(&st->failures[i], out, err) < 0) || buf_puts(out, "  ", err) < 0 ||
                shown_line(out, line, err) < 0 || buf_puts(out, "\n", err) < 0)
                return -1;
            has_head = true;
        }
    }
    return 0;
}
