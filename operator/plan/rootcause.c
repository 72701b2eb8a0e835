/* rootcause.c - reading torchrun's failure report. */
#include "operator/plan/rootcause.h"

#include "common/contract.h"
#include "common/sv.h"

#include <string.h>

enum { SIGNAL_MAX = 64 };

/* The number behind "<key> : " on a line of the report, e.g. "  exitcode  : -9 (pid: 28379)". */
static bool line_number(struct sv line, const char *key, int64_t min, int64_t max, int64_t *ret)
{
    struct sv rest = sv_trim(line);
    struct sv name;

    if (!sv_starts(rest, key) || !sv_next(&rest, ':', &name) || !sv_eq(sv_trim(name), key))
        return false;
    rest = sv_trim(rest);
    size_t len = 0;
    while (len < rest.len && (rest.p[len] == '-' || (rest.p[len] >= '0' && rest.p[len] <= '9')))
        len++;
    return sv_i64((struct sv){rest.p, len}, min, max, ret);
}

static bool parse_report(const char *report, struct rootcause *ret)
{
    struct sv rest = sv_from(report);
    struct sv line;
    int64_t code = 0;
    int64_t rank = -1;
    bool found = false;

    while (!found && sv_next(&rest, '\n', &line)) {
        (void)line_number(line, "rank", 0, INT32_MAX, &rank);
        found = line_number(line, "exitcode", -SIGNAL_MAX, 255, &code);
    }
    if (!found || code == 0)
        return false;
    ret->rank = (int32_t)rank;
    ret->signal = code < 0 ? (int32_t)-code : 0;
    ret->exit_code = code < 0 ? EXIT_CODE_SIGNAL_BASE + ret->signal : (int32_t)code;
    return true;
}

/* "SignalException: Process 7 got signal: 15": torchrun was asked to stop. */
static bool parse_signal(const char *message, struct rootcause *ret)
{
    static const char MARK[] = "got signal: ";
    const char *p = strstr(message, "SignalException");
    const char *mark = p ? strstr(p, MARK) : NULL;
    int64_t n;
    size_t len = 0;

    if (!mark)
        return false;
    mark += strlen(MARK);
    while (mark[len] >= '0' && mark[len] <= '9')
        len++;
    if (!sv_i64((struct sv){mark, len}, 1, SIGNAL_MAX, &n))
        return false;
    *ret =
        (struct rootcause){.exit_code = EXIT_CODE_SIGNAL_BASE + (int32_t)n, .signal = (int32_t)n, .rank = -1};
    return true;
}

bool rootcause_parse(const char *message, struct rootcause *ret)
{
    const char *report = NULL;

    /* The last report counts: earlier ones belong to restarts inside the pod, or to a torchrun that the program ran.
     * torchrun's own begins its line; what a worker said stands indented below it. */
    for (const char *p = message; (p = strstr(p, "Root Cause (first observed failure)")); p++)
        if (p == message || p[-1] == '\n')
            report = p;
    return (report && parse_report(report, ret)) || parse_signal(message, ret);
}
