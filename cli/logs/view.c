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

void view_line(struct buf *out, const struct view *v, const char *label, const struct merge_line *line)
{
    if (v->colours)
        buf_printf(out, NULL, "\x1b[%sm[%s]\x1b[0m ", COLOURS[(size_t)line->stream % ARRAY_LEN(COLOURS)],
                   label);
    else
        buf_printf(out, NULL, "[%s] ", label);
    if (v->times && line->time.len)
        buf_printf(out, NULL, "%.*s ", (int)line->time.len, line->time.p);
    if (v->safe)
        shown_line(out, line->text);
    else
        buf_append(out, line->text.p, line->text.len, NULL);
    buf_puts(out, "\n", NULL);
}
