/* agent_report.c - report how a run has ended: after a failure, the failure block on stderr and the ranks'
 * errors for Kubernetes and for a parent launcher; after a success, the last progress. */
#include "common/clock.h"
#include "common/contract.h"
#include "common/text.h"
#include "host/rank_contract.h"
#include "launcher/agent_state.h"
#include "launcher/error_file.h"
#include "launcher/termination.h"

enum { FRESH_MS = 60000 }; /* an older traceback on stderr is not the reason why the rank ended */

void agent_read_messages(struct agent *g)
{
    struct exit_worker *w = g->round.workers;

    for (int i = 0; i < g->round.n; i++) {
        if ((w[i].running && !w[i].raised) || w[i].message || !w[i].error_file)
            continue;
        const struct error_file left = error_file_read(w[i].error_file, &g->errors);
        w[i].message = left.message;
        w[i].traceback = left.traceback;
        w[i].wall_ms = left.wall_ms ? left.wall_ms : w[i].wall_ms;
        if (!w[i].message || g->logs.temporary)
            w[i].error_file = NULL;
    }
}

static enum exit_words words_of(const struct agent *g, int local, int *ret_code)
{
    const struct log_rank *log = &g->logs.ranks[local];
    cleanup_arena struct arena a = {0};
    const struct error_file left = error_file_read(log->error_file ? log->error_file : "", &a);
    const char *text = left.traceback ? left.traceback : left.message;

    *ret_code = left.exit_code;
    if (left.exit_code == EXIT_CODE_PEER_LOST)
        return EXIT_WORDS_LOST;
    if (text)
        return text_is_lost_peer(sv_from(text)) ? EXIT_WORDS_LOST : EXIT_WORDS_OWN;
    return clock_mono_ms() - log->streams[1].heard_ms < FRESH_MS
               ? exit_words_on_stderr(buf_str(&log->streams[1].tail))
               : EXIT_WORDS_NONE;
}

void agent_read_ranks(struct agent *g)
{
    const struct meeting_state *state = agent_running(g);
    const bool asked = state && state->asks && !g->nodes.view->failure_reported;
    const struct clock c = clock_system();
    struct round *r = &g->round;

    if ((r->state != ROUND_RUNNING && r->state != ROUND_WAITING) || (!r->failed && !asked))
        return;
    const int n = logs_poll(&g->logs, g->pfds); /* their last output */
    poll(g->pfds, (nfds_t)n, 0);
    logs_turn(&g->logs, g->pfds, n);
    for (int i = 0; i < r->n; i++)
        r->workers[i].words = words_of(g, i, &r->workers[i].own_code);
    const bool accused =
        (asked || r->state == ROUND_RUNNING) && exit_mark_raised(r->workers, r->n, asked, c.wall_ms(c.ctx));
    if (accused && asked) {
        r->failed = true;
        round_stop(r, SIGTERM);
    }
}

static void write_message(struct agent *g, const struct buf *text)
{
    struct err err;

    if (termination_write(g->report, text, &err) < 0)
        agent_say(g, "torchrun: no report (" CONTRACT_ENV_TERMINATION_LOG "): %s\n", err.msg);
}

void agent_leave_progress(struct agent *g)
{
    cleanup_buf struct buf text = BUF_INIT(ANSWER_BYTES);

    tracker_last(&g->tracker, &text);
    if (g->report && text.len)
        write_message(g, &text);
}

/* Write the termination report, unless the rank left neither a message nor output: Kubernetes then uses the
 * end of the container's log, which has more information. */
static void leave_report(struct agent *g, const struct exit_worker *w)
{
    cleanup_buf struct buf text = BUF_INIT(TERMINATION_BYTES);
    const char *tail = buf_str(&g->logs.ranks[w->local_rank].streams[1].tail);

    if (!g->report || (!*tail && !w->message))
        return;
    termination_encode(w, g->host, tail, &text);
    write_message(g, &text);
}

/* As PyTorch's launcher does: if a parent launcher started this one, copy the root cause's exception to the
 * error file that the parent set. */
static void pass_error_file(struct agent *g, const struct exit_worker *w)
{
    const char *from = g->logs.ranks[w->local_rank].error_file, *to = getenv("TORCHELASTIC_ERROR_FILE");
    struct err err;

    if (from && to && *to && error_file_pass(from, to, exit_signed_code(w->status), &err) < 0)
        agent_say(g, "torchrun: TORCHELASTIC_ERROR_FILE: %s\n", err.msg);
}

void agent_report(struct agent *g, const struct exit_worker *w, int n, int root)
{
    cleanup_buf struct buf text = BUF_INIT(EXIT_REPORT_BYTES);

    if (g->options->max_restarts && contract_is_final(w[root].status))
        agent_say(
            g,
            "torchrun: exit code %d means wrong usage, and another try would fail the same way: no restart "
            "here (restartPolicy: ExitCode keeps a job in Kubernetes from one, too)\n",
            EXIT_CODE_USAGE);
    exit_report(w, n, root, g->options->program[0], g->host, &text);
    logs_say(&g->logs, buf_str(&text), AGENT_FLUSH_MS);
    if (w == g->round.workers) {
        leave_report(g, &w[root]);
        pass_error_file(g, &w[root]);
    }
}
