/* rootcause.c - parse the failure report of torchrun, ours or PyTorch's, for the root cause. */
#include "operator/plan/rootcause.h"

#include "common/cleanup.h"
#include "common/contract.h"
#include "common/text.h"
#include "operator/plan/report.h"

#include <string.h>

enum { SIGNAL_MAX = 64, SIGNAL_ABORT = 6, SIGNAL_TERM = 15, LINE_BYTES = 256 };

static const char ROOT_MARK[] = "Root Cause (first observed failure)";

/* One worker in the report. */
struct entry {
    int64_t rank; /* -1: not said */
    int64_t code; /* 0: not said; -n: signal n */
    bool root;
    bool told;      /* "traceback :" has come */
    struct sv line; /* the last one behind it that says something */
    bool recorded;  /* it left the exception it died of */
    bool peer_lost; /* and that one tells of a broken connection */
};

static bool contains(struct sv text, const char *what)
{
    return memmem(text.p, text.len, what, strlen(what)) != NULL;
}

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

/* "[3]:" begins a worker. As the headings it begins its line: what a worker said stands indented. */
static bool begins_entry(struct sv line)
{
    struct sv t = sv_trim(line);
    int64_t n;

    return t.len > 3 && t.p == line.p && t.p[0] == '[' && t.p[t.len - 2] == ']' && t.p[t.len - 1] == ':' &&
           sv_i64((struct sv){t.p + 1, t.len - 3}, 0, INT32_MAX, &n);
}

/* Headings are drawn with these. */
static bool is_rule(struct sv line)
{
    return sv_starts(line, "=====") || sv_starts(line, "-----");
}

/* What the worker said last; of a worker that left nothing the report tells how to make it say more. */
static void note_line(struct entry *e, struct sv line)
{
    struct sv t = sv_trim(line);
    struct sv key;

    if (!e->told) {
        e->told = sv_starts(t, "traceback") && sv_next(&t, ':', &key);
        t = sv_trim(t);
        if (sv_starts(t, "To enable traceback see") || sv_starts(t, "none:"))
            return;
    }
    if (e->told && t.len && !is_rule(t))
        e->line = t;
}

static void read_line(struct entry *e, struct sv line)
{
    if (!e->code) {
        (void)line_number(line, "rank", 0, INT32_MAX, &e->rank);
        (void)line_number(line, "exitcode", -SIGNAL_MAX, 255, &e->code);
        return;
    }
    note_line(e, line);
    e->recorded |=
        sv_starts(sv_trim(line), "traceback") && contains(line, "Traceback (most recent call last)");
    e->peer_lost |= e->recorded && text_tells_of_lost_peer(line);
}

/* torchrun puts first whose exception is the oldest, which may be a consequence of an end that left none; and
 * it terminates the others when one has failed, so that 15, or 143 of a rank that ended by itself then, says nothing of
 * who has not left another reason. A peer of a lost rank that left no exception may have ended by SIGABRT, or with 1. */
static int weight(const struct entry *e)
{
    const bool asked = e->code == -SIGNAL_TERM || e->code == EXIT_CODE_SIGNAL_BASE + SIGNAL_TERM;
    const bool open = !e->recorded && (e->code == -SIGNAL_ABORT || (e->code == EXIT_CODE_ERROR && !e->root));
    int own = asked ? 0 : e->peer_lost ? 1 : open ? 2 : 3;

    return 2 * own + e->root;
}

/* An entry is complete: the heaviest is kept, of equals the first. */
static void consider(struct entry *e, struct entry *best, bool *root_has_code)
{
    if (!e->code)
        return;
    *root_has_code |= e->root;
    if (e->code == -SIGNAL_TERM && e->recorded)
        e->code = EXIT_CODE_ERROR;
    if (!best->code || weight(e) > weight(best))
        *best = *e;
}

/* The last line in [from, end) that begins with the mark; NULL: none. torchrun's own headings begin their line, what a
 * worker said stands indented below them. */
static const char *last_line(const char *from, const char *end, const char *mark)
{
    const char *found = NULL;

    for (const char *p = from; (p = strstr(p, mark)) && p < end; p++)
        if (p == from || p[-1] == '\n')
            found = p;
    return found;
}

/* Where the report of this root cause begins, as far as the message holds it. */
static const char *report_begin(const char *message, const char *root)
{
    const char *earlier = last_line(message, root, ROOT_MARK);
    const char *failures = last_line(earlier ? earlier : message, root, "Failures:");

    return failures ? failures : earlier ? root : message;
}

static bool parse_report(const char *begin, const char *root, struct rootcause *ret)
{
    struct sv rest = sv_from(begin);
    struct sv line;
    struct entry e = {.rank = -1};
    struct entry best = {.rank = -1};
    bool root_has_code = false;

    while (sv_next(&rest, '\n', &line)) {
        bool at_root = line.p <= root && root < line.p + line.len;
        if (at_root || begins_entry(line)) {
            consider(&e, &best, &root_has_code);
            e = (struct entry){.rank = -1, .root = e.root || at_root};
        } else {
            read_line(&e, line);
        }
    }
    consider(&e, &best, &root_has_code);
    if (!root_has_code)
        return false;
    int32_t signal = best.code < 0 ? (int32_t)-best.code : 0;
    *ret = (struct rootcause){
        .exit_code = signal ? EXIT_CODE_SIGNAL_BASE + signal : (int32_t)best.code,
        .signal = signal,
        .rank = (int32_t)best.rank,
        .peer_lost = best.peer_lost,
        .line = best.line,
    };
    return true;
}

/* "SignalException: Process 7 got signal: 15": torchrun was asked to stop. The traceback above it may quote the
 * line that raised it, without a number. */
static bool parse_signal(const char *message, struct rootcause *ret)
{
    static const char MARK[] = "got signal: ";
    const char *p = strstr(message, "SignalException");
    int64_t n = 0;

    while (p && (p = strstr(p, MARK))) {
        size_t len = 0;
        p += strlen(MARK);
        while (p[len] >= '0' && p[len] <= '9')
            len++;
        if (sv_i64((struct sv){p, len}, 1, SIGNAL_MAX, &n))
            break;
    }
    if (!p)
        return false;
    *ret =
        (struct rootcause){.exit_code = EXIT_CODE_SIGNAL_BASE + (int32_t)n, .signal = (int32_t)n, .rank = -1};
    return true;
}

/* torchrun reads the error file that a worker leaves. It terminates the others when one has failed; a worker that was
 * writing its own file then leaves half of it, torchrun dies of reading it, and its report of who failed is lost
 * (PyTorch 2.15, ProcessFailure.__post_init__). All that is known is that some rank went before. */
static bool died_of_torn_error_file(struct sv message, struct sv last)
{
    return sv_starts(last, "json.decoder.JSONDecodeError: ") &&
           contains(message, "self.error_file_data = json.load(fp)");
}

static struct sv last_words(const char *message)
{
    struct sv rest = sv_from(message);
    struct sv line;
    struct sv last = {"", 0};

    while (sv_next(&rest, '\n', &line)) {
        struct sv t = sv_trim(line);
        if (t.len && !is_rule(t))
            last = t;
    }
    return last;
}

/* The last words of a program that ended with an exception, or of a report whose heading was cut off. */
static bool parse_exception(const char *message, struct rootcause *ret)
{
    struct sv last = last_words(message);

    if (!text_tells_of_lost_peer(last) && !died_of_torn_error_file(sv_from(message), last))
        return false;
    *ret = (struct rootcause){.exit_code = EXIT_CODE_ERROR, .rank = -1, .peer_lost = true, .line = last};
    return true;
}

/* PyTorch's programs end with 1 when they have lost a peer. */
static bool parse_own(const char *message, struct rootcause *ret)
{
    struct report r;

    if (!report_parse(message, &r))
        return false;
    *ret = (struct rootcause){
        .exit_code = r.exit_code,
        .signal = r.signal,
        .rank = r.rank,
        .peer_lost = r.exit_code == EXIT_CODE_ERROR && text_tells_of_lost_peer(r.message),
    };
    return true;
}

/* PyTorch's block. The last one counts: earlier ones belong to restarts inside the pod, or to a torchrun that the
 * program ran. */
static bool parse_block(const char *message, struct rootcause *ret)
{
    const char *root = last_line(message, message + strlen(message), ROOT_MARK);

    return root && parse_report(report_begin(message, root), root, ret);
}

bool rootcause_parse(const char *message, struct rootcause *ret)
{
    return parse_own(message, ret) || parse_block(message, ret) || parse_signal(message, ret) ||
           parse_exception(message, ret);
}

const char *rootcause_text(const char *message, struct arena *a)
{
    struct report r;

    return report_parse(message, &r) ? report_message(&r, a) : message;
}

const char *rootcause_line(const char *message, struct arena *a)
{
    struct rootcause cause = {0};
    struct report r;
    struct sv line;

    if (report_parse(message, &r))
        line = last_words(report_message(&r, a));
    else if (parse_block(message, &cause) || parse_signal(message, &cause))
        line = cause.line;
    else
        line = last_words(message);
    char *text = arena_strndup(a, line.len ? line.p : "", line.len < LINE_BYTES ? line.len : LINE_BYTES);
    text_mend(text);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    return text;
}
