/* exit.c - find the root cause among the ranks' exits, and format the failure report. */
#include "launcher/exit.h"
#include "common/clock.h"
#include "common/contract.h"

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

const char *exit_signal_name(int signal, char buf[static 32])
{
    const char *name = sigabbrev_np(signal);

    if (name)
        snprintf(buf, 32, "SIG%s", name);
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

static bool failed_by_itself(const struct exit_worker *w)
{
    return !w->running && w->status != 0 && !w->stopped_by_us;
}

static bool only_noticed(const struct exit_worker *w)
{
    return WIFEXITED(w->status) && WEXITSTATUS(w->status) == EXIT_CODE_PEER_LOST;
}

int exit_root_cause(const struct exit_worker *w, int n, bool *sure)
{
    int root = -1;

    for (int i = 0; i < n; i++) {
        if (!failed_by_itself(&w[i]))
            continue;
        if (root < 0 || (only_noticed(&w[root]) && !only_noticed(&w[i])) ||
            (only_noticed(&w[root]) == only_noticed(&w[i]) && w[i].order < w[root].order))
            root = i;
    }
    *sure = root >= 0 && !only_noticed(&w[root]);
    return root;
}

static int report_one(const struct exit_worker *w, int index, const char *host, struct buf *out,
                      struct err *err)
{
    char when[CLOCK_RFC3339_BYTES], code[64], name[32], message[EXIT_MESSAGE_BYTES + 1];

    clock_rfc3339(w->wall_ms, true, when);
    if (WIFSIGNALED(w->status)) {
        exit_signal_name(WTERMSIG(w->status), name);
        snprintf(code, sizeof(code), "%d (pid: %d)  (%s)", -WTERMSIG(w->status), (int)w->pid, name);
        snprintf(message, sizeof(message), "Signal %d (%s) received by PID %d", WTERMSIG(w->status), name,
                 (int)w->pid);
    } else {
        snprintf(code, sizeof(code), "%d (pid: %d)", WEXITSTATUS(w->status), (int)w->pid);
        snprintf(message, sizeof(message), "none: see the rank's own output");
    }
    if (w->message)
        snprintf(message, sizeof(message), "%s", w->message);
    return buf_printf(out, err,
                      "[%d]:\n"
                      "  time      : %s\n"
                      "  host      : %s\n"
                      "  rank      : %d (local_rank: %d)\n"
                      "  exitcode  : %s\n"
                      "  error_file: %s\n"
                      "  traceback : %s\n",
                      index, when, w->host ? w->host : host, w->rank, w->local_rank, code,
                      w->error_file ? w->error_file : "<N/A>", message);
}

/* List the failures besides the root cause, without ranks that the launcher stopped. */
static int report_others(const struct exit_worker *w, int n, int root, const char *host, struct buf *out,
                         struct err *err)
{
    int shown = 0, more = 0;

    for (int i = 0; i < n; i++) {
        if (i == root || !failed_by_itself(&w[i]))
            continue;
        if (shown == EXIT_OTHERS_MAX)
            more++;
        else if (report_one(&w[i], ++shown, host, out, err) < 0)
            return -1;
    }
    if (more)
        return buf_printf(out, err, "  ... and %d more\n", more);
    return shown ? 0 : buf_puts(out, "  <NO_OTHER_FAILURES>\n", err);
}

int exit_report(const struct exit_worker *w, int n, int root, const char *program, const char *host,
                struct buf *out, struct err *err)
{
    static const char thick[] = "============================================================\n";
    static const char thin[] = "------------------------------------------------------------\n";

    if (buf_printf(out, err, "%s%.200s FAILED\n%sFailures:\n", thick, program, thin) < 0 ||
        report_others(w, n, root, host, out, err) < 0 ||
        buf_printf(out, err, "%sRoot Cause (first observed failure):\n", thin) < 0 ||
        report_one(&w[root], 0, host, out, err) < 0)
        return -1;
    return buf_puts(out, thick, err);
}
