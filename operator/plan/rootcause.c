/* rootcause.c - parse the failure report of torchrun, ours or PyTorch's, for the root cause. */
#include "operator/plan/rootcause.h"

#include "common/cleanup.h"
#include "common/contract.h"
#include "common/json.h"
#include "common/text.h"

#include <stdio.h>
#include <string.h>

enum { SIGNAL_MAX = 64, SIGNAL_ABORT = 6, SIGNAL_TERM = 15 };
enum { TAIL_BYTES = 2045 }; /* the kubelet keeps 2,048 bytes of a log, in whole characters */

static const char ROOT_MARK[] = "Root Cause (first observed failure)";

/* One worker in the report. */
struct entry {
    int64_t rank; /* -1: not given */
    int64_t code; /* 0: not given; -n: signal n */
    bool root;
    struct sv text; /* its error text */
    bool recorded;  /* the text has its exception */
    bool peer_lost; /* the exception is about a broken connection */
};

/* The number after "<key> : " on a line of the report, e.g. "  exitcode  : -9 (pid: 28379)". */
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

/* "[3]:" at the begin of a line starts a worker's entry. Output of workers is indented. */
static bool begins_entry(struct sv line)
{
    struct sv t = sv_trim(line);
    int64_t n;

    return t.len > 3 && t.p == line.p && t.p[0] == '[' && t.p[t.len - 2] == ']' && t.p[t.len - 1] == ':' &&
           sv_i64((struct sv){t.p + 1, t.len - 3}, 0, INT32_MAX, &n);
}

/* Whether a line only has characters of which headings are drawn. */
static bool is_rule(struct sv line)
{
    return sv_starts(line, "=====") || sv_starts(line, "-----");
}

static struct sv from(struct sv line, const char *p)
{
    return (struct sv){p, (size_t)(line.p + line.len - p)};
}

/* The line without text that a progress bar has overwritten, and without prefixes: torch's "[rank1]:",
 * --tee's "[default1]:". */
static struct sv own_part(struct sv line)
{
    const char *p = line.len ? memrchr(line.p, '\r', line.len - 1) : NULL;

    if (p)
        line = from(line, p + 1);
    while (line.len && line.p[0] == '[' && (p = memmem(line.p, line.len, "]:", 2)) && sv_is_digit(p[-1]) &&
           !memchr(line.p, ' ', (size_t)(p - line.p)))
        line = from(line, p + 2);
    return line;
}

/* `File "train.py", line 3, in main`; for a syntax error without `in`. Not faulthandler's `line 3 in main`. */
static bool is_frame(struct sv said)
{
    return sv_starts(said, "File \"") && sv_contains(said, "\", line ") &&
           (sv_contains(said, ", in ") || !sv_contains(said, " in "));
}

/* The line with the error: the one after the last frame of a traceback; empty: none. Tracebacks of exception
 * groups have a tree of | and + before them. */
static struct sv named_line(struct sv text, struct sv *last)
{
    struct sv line, said, named = {"", 0};
    size_t frame = 0, indent; /* indentation of the last frame; 0: not in a traceback */

    for (*last = named; sv_next(&text, '\n', &line);) {
        line = own_part(line);
        for (indent = 0; indent < line.len && strchr(" |+", line.p[indent]); indent++)
            ;
        said = sv_trim(from(line, line.p + indent));
        if (!said.len || is_rule(said))
            continue;
        *last = said;
        if (is_frame(said)) {
            frame = indent;
        } else if (indent < frame || sv_starts(said, "Fatal Python error: ") || sv_starts(said, "what():")) {
            named = said;
            frame = 0;
        }
    }
    return named;
}

static struct sv error_line(struct sv text)
{
    struct sv last, named = named_line(text, &last);

    return named.len ? named : last;
}

/* A worker's error text is all text after "traceback :". If there is none, the report has a hint how to
 * enable it. */
static void read_line(struct entry *e, struct sv line)
{
    struct sv t = sv_trim(line), key;

    if (!e->code) {
        (void)line_number(line, "rank", 0, INT32_MAX, &e->rank);
        (void)line_number(line, "exitcode", -SIGNAL_MAX, 255, &e->code);
        return;
    }
    if (e->text.p)
        e->text.len = (size_t)(line.p + line.len - e->text.p);
    else if (sv_starts(t, "traceback") && sv_next(&t, ':', &key) && t.p) {
        t = sv_trim(t);
        if (sv_starts(t, "To enable traceback see") || sv_starts(t, "none:"))
            t = from(t, t.p + t.len);
        e->text = t;
        e->recorded = sv_contains(t, "Traceback (most recent call last)");
    }
    e->peer_lost |= e->recorded && text_is_lost_peer(line);
}

/* How likely an entry is the root cause. torchrun lists the oldest exception first, which may be a
 * consequence of a process that died without one. It terminates the others after a failure, so signal 15 (or
 * exit code 143) without an exception means nothing. A peer of a lost rank without an exception may have
 * ended by SIGABRT, or with 1. */
static int weight(const struct entry *e)
{
    const bool terminated = e->code == -SIGNAL_TERM || e->code == EXIT_CODE_SIGNAL_BASE + SIGNAL_TERM;
    const bool open = !e->recorded && (e->code == -SIGNAL_ABORT || (e->code == EXIT_CODE_ERROR && !e->root));
    int own = terminated ? 0 : e->peer_lost ? 1 : open ? 2 : 3;

    return 2 * own + e->root;
}

/* An entry is complete: keep the one with the highest weight, of equal ones the first. */
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

/* The last line in [from, end) that begins with the mark; NULL: none. torchrun's headings begin a line;
 * output of workers is indented. */
static const char *last_line(const char *from, const char *end, const char *mark)
{
    const char *found = NULL;

    for (const char *p = from; (p = strstr(p, mark)) && p < end; p++)
        if (p == from || p[-1] == '\n')
            found = p;
    return found;
}

/* The begin of the report with this root cause, or of its part in the message. */
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
        .line = error_line(best.text),
    };
    return true;
}

/* "SignalException: Process 7 got signal: 15": torchrun received a signal. The traceback above it may quote
 * the source line that raised it, which has no number. */
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

/* torchrun terminates the other workers after a failure. A worker that is writing its error file then leaves
 * half a file; torchrun fails to parse it, and its report is lost (PyTorch 2.15,
 * ProcessFailure.__post_init__). So some other rank failed first, but which one is unknown. */
static bool died_of_torn_error_file(struct sv message, struct sv last)
{
    return sv_starts(last, "json.decoder.JSONDecodeError: ") &&
           sv_contains(message, "self.error_file_data = json.load(fp)");
}

/* The last line of a program that ended with an exception, or of a report whose heading was cut off. */
static bool parse_exception(const char *message, struct rootcause *ret)
{
    struct sv last;

    (void)named_line(sv_from(message), &last);
    if (!text_is_lost_peer(last) && !died_of_torn_error_file(sv_from(message), last))
        return false;
    *ret = (struct rootcause){.exit_code = EXIT_CODE_ERROR, .rank = -1, .peer_lost = true, .line = last};
    return true;
}

/* Our launcher's report: complete, at the begin of the message; text after it is ignored. The user's program
 * can write to the same file, and its log may be JSON, so check that it has our members with valid numbers.
 * NULL: not a report. */
static cJSON *own_report(const char *message, struct rootcause *ret)
{
    const char *behind;
    cleanup_json cJSON *o =
        strncmp(message, "{\"rank\":", 8) == 0 ? cJSON_ParseWithOpts(message, &behind, false) : NULL;
    int64_t rank = json_i64(o, "rank", -1), code = json_i64(o, "exitCode", 0),
            signal = json_i64(o, "signal", 0);
    const char *text = json_str(o, "message");
    const cJSON *second = o ? o->child->next : NULL;

    if (!second || strcmp(second->string, "exitCode") != 0 || !json_str(o, "host") || !text || rank < 0 ||
        rank > INT32_MAX || code < 1 || code > 255 ||
        (signal && (signal < 1 || signal > SIGNAL_MAX || code != EXIT_CODE_SIGNAL_BASE + signal)))
        return NULL;
    *ret = (struct rootcause){
        .exit_code = (int32_t)code,
        .signal = (int32_t)signal,
        .rank = (int32_t)rank,
        .no_progress = cJSON_IsTrue(json_child(o, "noProgress")),
        .peer_lost = text_is_lost_peer(sv_from(text)),
    };
    return TAKE(o);
}

/* PyTorch's report. Only the last one counts: earlier ones are of restarts inside the pod, or of a torchrun
 * inside the program. */
static bool parse_block(const char *message, struct rootcause *ret)
{
    const char *root = last_line(message, message + strlen(message), ROOT_MARK);

    return root && parse_report(report_begin(message, root), root, ret);
}

bool rootcause_parse(const char *message, struct rootcause *ret)
{
    cleanup_json cJSON *report = own_report(message, ret);

    return report || parse_block(message, ret) || parse_signal(message, ret) || parse_exception(message, ret);
}

/* The message of the report. */
static const char *report_text(const cJSON *report, struct arena *a)
{
    char *out = arena_strdup(a, json_str(report, "message"));

    text_plain(out);
    for (char *c = out; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\n') || *c == 0x7f)
            *c = ' ';
    return out;
}

const char *rootcause_text(const char *message, struct arena *a)
{
    struct rootcause cause;
    cleanup_json cJSON *report = own_report(message, &cause);

    return report ? report_text(report, a) : message;
}

/* The length of the programs' output: up to the launcher's failure report, or PyTorch's traceback above it. */
static size_t own_len(const char *text)
{
    static const char THEIRS[] = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError";
    const char *root = last_line(text, text + strlen(text), ROOT_MARK);
    const char *begin = root ? report_begin(text, root) : text + strlen(text);

    for (int lines = 0; root && begin > text && (begin[-1] != '\n' || ++lines <= 3);) /* its title */
        begin--;
    const char *theirs = root ? last_line(text, begin + 1, THEIRS) : NULL;
    const char *traceback = theirs ? last_line(text, theirs, "Traceback (most recent call last):") : begin;
    return traceback ? (size_t)(traceback - text) : 0;
}

/* Whether the line is of PyTorch's launcher, or of another rank by torch's prefix. */
static bool of_others(struct sv line, int32_t rank)
{
    int n = rank;

    return (rank >= 0 && sscanf(line.p, "[rank%9d]:", &n) == 1 && n != rank) ||
           sv_contains(line, " torch/distributed/run.py:") ||
           sv_contains(line, " torch/distributed/elastic/");
}

char *rootcause_log(const char *log, int32_t rank, struct arena *a)
{
    struct sv rest = {log, own_len(log)}, line;
    char *out = arena_alloc(a, rest.len + 2), *end = out;

    while (rest.len && sv_next(&rest, '\n', &line))
        if (!of_others(line, rank)) {
            end = mempcpy(end, line.p, line.len);
            *end++ = '\n';
        }
    while (end > out + 1 && end[-2] == '\n')
        end--;
    *end = '\0';
    return out;
}

/* The message without half a line at its begin, where the kubelet cut it. */
static const char *whole_lines(const char *message)
{
    const char *end = strchrnul(message, '\n');

    return strlen(message) < TAIL_BYTES ? message : end + (*end != '\0');
}

/* Whether the report has more than how the process ended. */
static bool has_words(const struct rootcause *cause)
{
    return cause->line.len && !sv_starts(cause->line, "Signal ");
}

const char *rootcause_line(const char *message, const char *log, struct arena *a)
{
    struct rootcause cause = {.rank = -1};
    cleanup_json cJSON *report = own_report(message, &cause);
    struct sv line = {"", 0}, last;

    if (report) {
        line = error_line(sv_from(report_text(report, a)));
    } else if (parse_block(message, &cause)) {
        line = named_line(sv_from(log[0] ? log : rootcause_log(whole_lines(message), cause.rank, a)), &last);
        if (has_words(&cause) || (cause.line.len && !line.len))
            line = cause.line;
        line = line.len ? line : last;
    } else if (!parse_signal(message, &cause)) {
        line = error_line(sv_from(message[0] ? message : log));
    }
    char *text = arena_strndup(a, line.p ? line.p : "",
                               line.len < ROOTCAUSE_LINE_BYTES ? line.len : ROOTCAUSE_LINE_BYTES),
         *end = text;
    text_repair(text);
    for (const char *c = text; *c; c += *c != '\0')
        if (c[0] == '\x1b' && c[1] == '[') /* a colour, to its last letter */
            c += strcspn(c, "ABCDEFGHJKSTfhlmnsu");
        else
            *end++ = (unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c;
    *end = '\0';
    return text;
}

const char *rootcause_end(int32_t exit_code, int32_t signal, struct arena *a)
{
    return signal ? arena_printf(a, "exit code %d (signal %d)", exit_code, signal)
                  : arena_printf(a, "exit code %d", exit_code);
}

const char *rootcause_brief(const char *message, struct arena *a)
{
    struct rootcause cause = {.rank = -1};
    cleanup_json cJSON *report = own_report(message, &cause);
    char text[ROOTCAUSE_LINE_BYTES + 1];

    if (report || !parse_block(message, &cause))
        return report ? report_text(report, a) : message;
    const char *line = rootcause_line(message, "", a);
    const char *who = cause.rank >= 0 ? arena_printf(a, "rank %d: ", cause.rank) : "";
    const char *end = cause.line.len ? "" : rootcause_end(cause.exit_code, cause.signal, a);
    const int full = snprintf(text, sizeof(text), "%s%s%s%s", who, end, end[0] && line[0] ? ": " : "", line);
    text_ellipsis(text, sizeof(text), (size_t)full);
    return arena_strdup(a, text);
}

const char *rootcause_excerpt(const char *message, struct arena *a)
{
    struct rootcause cause;

    if (!parse_block(message, &cause) || has_words(&cause))
        return message;
    return arena_printf(a, "%s%s", rootcause_log(whole_lines(message), -1, a), rootcause_brief(message, a));
}

bool rootcause_names(const char *line, int64_t rank)
{
    char name[32];
    const int len = snprintf(name, sizeof(name), "rank %lld", (long long)rank);

    if (!sv_starts(sv_from(line), "no progress for "))
        return false;
    while ((line = strstr(line, name)) && sv_is_digit(line[len]))
        line++;
    return line;
}
