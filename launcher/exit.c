/* exit.c - find the root cause among the ranks' exits, and format the failure report. */
#include "launcher/exit.h"
#include "common/clock.h"
#include "common/contract.h"
#include "common/memory.h"
#include "common/sv.h"
#include "common/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

int exit_status_code(int status)
{
    return WIFSIGNALED(status) ? EXIT_CODE_SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

int exit_error_code(const struct err *err)
{
    if (err->kind == ERR_PEER)
        return EXIT_CODE_PEER_LOST;
    return err->kind == ERR_TIMEOUT || err_is_shortage(err) ? EXIT_CODE_RETRYABLE : EXIT_CODE_ERROR;
}

/* Not every C library has sigabbrev_np. */
static const char *const SIGNALS[] = {
    [SIGHUP] = "HUP",       [SIGINT] = "INT",   [SIGQUIT] = "QUIT",   [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",
    [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",     [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
    [SIGSEGV] = "SEGV",     [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE",   [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
    [SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",   [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN",     [SIGTTOU] = "TTOU", [SIGURG] = "URG",     [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
    [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGIO] = "POLL",   [SIGPWR] = "PWR",
    [SIGSYS] = "SYS",
};

const char *exit_signal_name(int signal, char buf[static 32])
{
    if (signal > 0 && signal < (int)ARRAY_LEN(SIGNALS) && SIGNALS[signal])
        snprintf(buf, 32, "SIG%s", SIGNALS[signal]);
    else
        snprintf(buf, 32, "signal %d", signal);
    return buf;
}

const char *exit_describe(int status, char buf[static 48])
{
    char name[32];

    if (WIFSIGNALED(status))
        snprintf(buf, 48, "%s", exit_signal_name(WTERMSIG(status), name));
    else
        snprintf(buf, 48, "exit code %d", WEXITSTATUS(status));
    return buf;
}

int exit_signed_code(int status)
{
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool failed_by_itself(const struct exit_worker *w)
{
    return w->status != 0 && (w->raised || (!w->running && !w->stopped_by_us));
}

/* 2: it lost a peer. 1: it may have lost one: gloo and NCCL then raise an exception or abort the process. 0:
 * it failed on its own. */
static int weakness(const struct exit_worker *w)
{
    const int code = exit_status_code(w->status);
    const bool open = !w->raised && (code == EXIT_CODE_ERROR || code == EXIT_CODE_ABORTED);

    if (code == EXIT_CODE_PEER_LOST || (open && w->words == EXIT_WORDS_LOST))
        return 2;
    return open && w->words == EXIT_WORDS_NONE;
}

int exit_root_cause(const struct exit_worker *w, int n, int *unsure)
{
    int root = -1;

    for (int i = 0; i < n; i++) {
        if (!failed_by_itself(&w[i]))
            continue;
        if (root < 0 || weakness(&w[i]) < weakness(&w[root]) ||
            (weakness(&w[i]) == weakness(&w[root]) && w[i].order < w[root].order))
            root = i;
    }
    *unsure = root < 0 ? 2 : weakness(&w[root]);
    if (*unsure == 1 && exit_status_code(w[root].status) == EXIT_CODE_ERROR)
        *unsure = 0; /* another failure of this kind would not be more certain */
    return root;
}

bool exit_mark_raised(struct exit_worker *w, int n, bool asked, int64_t now_wall_ms)
{
    int unsure, root = exit_root_cause(w, n, &unsure);
    bool any = false;

    if (root < 0 ? !asked : !w[root].raised && !weakness(&w[root]))
        return false;
    for (int i = 0; i < n; i++)
        if (w[i].running && w[i].words == EXIT_WORDS_OWN) {
            w[i].raised = any = true;
            w[i].status = (w[i].own_code ? w[i].own_code : EXIT_CODE_ERROR) << 8;
            w[i].wall_ms = now_wall_ms;
        }
    return any;
}

enum exit_words exit_words_on_stderr(const char *tail)
{
    cleanup_free char *plain = memory_strdup(tail);
    struct sv rest, line;
    bool frames = false, raised = false;

    text_plain(plain);
    rest = sv_from(plain);
    while (sv_next(&rest, '\n', &line)) {
        const size_t prefix = sv_starts(line, "[rank") ? strcspn(line.p, " \n") + 1 : 0;
        if (prefix <= line.len)
            line = sv_skip(line, prefix);
        raised = raised || (frames && line.len && *line.p > ' ' && line.p[line.len]);
        frames = sv_starts(line, "  File \"") || (frames && sv_starts(line, " "));
    }
    return text_is_lost_peer(sv_from(tail)) ? EXIT_WORDS_LOST : raised ? EXIT_WORDS_OWN : EXIT_WORDS_NONE;
}

/* The bytes that a character takes in the report: a new line is indented by 2. */
static size_t indented(char c)
{
    return c == '\n' ? 3 : 1;
}

/* Append a rank's text as PyTorch's launcher does: indent all lines but the first, also the empty one after
 * the last newline. So no line of the text can look like a heading of the block. */
static void put_indented(struct sv rest, struct buf *out)
{
    struct sv line;

    for (bool first = true; sv_next(&rest, '\n', &line); first = false) {
        buf_puts(out, first ? "" : "\n  ", NULL);
        buf_append(out, line.p, line.len, NULL);
    }
}

static void put_traceback(const char *text, struct buf *out)
{
    const size_t from = text_end(text, strlen(text), EXIT_TRACEBACK_BYTES, indented);

    buf_puts(out, from ? "[the beginning is left out here]\n  " : "", NULL);
    put_indented(sv_from(text + from), out);
}

/* Append the beginning of the message, as much as fits. */
static void put_message(const char *text, struct buf *out)
{
    size_t len = 0;

    for (size_t used = 0; text[len] && (used += indented(text[len])) <= EXIT_MESSAGE_BYTES; len++)
        ;
    put_indented((struct sv){text, text_head(text, len)}, out);
}

static bool was_stopped(const struct exit_worker *w)
{
    return !w->running && w->status != 0 && w->stopped_by_us && !w->raised;
}

/* Append the text after "traceback : ": the traceback, the message, or PyTorch's text if the rank left
 * neither. */
static void put_reason(const struct exit_worker *w, struct buf *out)
{
    char name[32];

    if (w->traceback)
        put_traceback(w->traceback, out);
    else if (w->message)
        put_message(w->message, out);
    else if (WIFSIGNALED(w->status))
        buf_printf(out, NULL, "Signal %d (%s) received by PID %d", WTERMSIG(w->status),
                   exit_signal_name(WTERMSIG(w->status), name), (int)w->pid);
    else
        buf_puts(out, "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html", NULL);
    buf_puts(out, "\n", NULL);
}

static void report_one(const struct exit_worker *w, int index, const char *host, struct buf *out)
{
    char when[CLOCK_RFC3339_BYTES], signal[40] = "", name[32];

    clock_local(w->wall_ms, when);
    if (WIFSIGNALED(w->status))
        snprintf(signal, sizeof(signal), "  (%s)", exit_signal_name(WTERMSIG(w->status), name));
    buf_printf(out, NULL,
               "[%d]:\n"
               "  time      : %s\n"
               "  host      : %s\n"
               "  rank      : %d (local_rank: %d)\n"
               "  exitcode  : %d (pid: %d)%s\n"
               "  error_file: %s\n"
               "  traceback : ",
               index, when, w->host ? w->host : host, w->rank, w->local_rank, exit_signed_code(w->status),
               (int)w->pid, signal, w->error_file ? w->error_file : "<N/A>");
    put_reason(w, out);
}

/* List the failures besides the root cause: first the ranks that failed on their own, numbered together with
 * the root cause, then those that the launcher stopped. Returns the root cause's number. */
static int report_others(const struct exit_worker *w, int n, int root, const char *host, struct buf *out)
{
    int index = 0, counted = 0, shown = 0, more = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            if (i == root && pass == 0)
                index = counted++;
            if (i == root || !(pass ? was_stopped(&w[i]) : failed_by_itself(&w[i])))
                continue;
            if (shown == EXIT_OTHERS_MAX)
                more++;
            else {
                shown++;
                report_one(&w[i], counted++, host, out);
            }
        }
    if (more)
        buf_printf(out, NULL, "  ... and %d more\n", more);
    else if (!shown)
        buf_puts(out, "  <NO_OTHER_FAILURES>\n", NULL);
    return index;
}

void exit_report(const struct exit_worker *w, int n, int root, const char *program, const char *host,
                 struct buf *out)
{
    static const char thick[] = "============================================================\n";
    static const char thin[] = "------------------------------------------------------------\n";

    buf_printf(out, NULL, "%s%.200s FAILED\n%sFailures:\n", thick, program, thin);
    const int index = report_others(w, n, root, host, out);
    buf_printf(out, NULL, "%sRoot Cause (first observed failure):\n", thin);
    report_one(&w[root], index, host, out);
    buf_puts(out, thick, NULL);
}
