/* view.c - prefix, colour and text of a log line. */
#include "cli/logs/view.h"

#include "cli/shown.h"

/* Of the eight colours those that can be read on black and on white. */
static const char *const COLOURS[] = {"36", "33", "35", "32", "34", "31", "96", "93", "95", "92", "94", "91"};

bool view_wants(const regex_t *grep, struct sv line)
{
    regmatch_t within = {.rm_eo = (regoff_t)line.len};

    return !grep || regexec(grep, line.p, 1, &within, REG_STARTEND) == 0;
}

int view_line(struct buf *out, const struct view *v, const char *label, const struct merge_line *line,
              struct err *err)
{
    const char *colour = COLOURS[(size_t)line->stream % (sizeof(COLOURS) / sizeof(COLOURS[0]))];

    if (v->colours ? buf_printf(out, err, "\x1b[%sm[%s]\x1b[0m ", colour, label) < 0
                   : buf_printf(out, err, "[%s] ", label) < 0)
        return -1;
    if (v->times && line->time.len &&
        (buf_append(out, line->time.p, line->time.len, err) < 0 || buf_puts(out, " ", err) < 0))
        return -1;
    if (v->safe ? shown_line(out, line->text, err) < 0
                : buf_append(out, line->text.p, line->text.len, err) < 0)
        return -1;
    return buf_puts(out, "\n", err);
}
