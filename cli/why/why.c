/* why.c - kubectl ptj why: what keeps a job from going on, on one screen. */
#include "cli/terminal.h"
#include "cli/why/collect.h"
#include "cli/why/screen.h"

#include <stdio.h>
#include <unistd.h>

enum { COLUMNS_MIN = 40, ROWS_MIN = 16, OUT_BYTES = 4 << 20 };

static int run_why(struct session *s, const struct args *a, struct err *err)
{
    const struct terminal t = terminal_of(STDOUT_FILENO);
    struct screen_size size = {.events = args_has(a, "all")};
    cleanup_buf struct buf out = BUF_INIT(OUT_BYTES);
    cleanup_collected struct collected g = {0};

    if (isatty(STDOUT_FILENO)) {
        size.columns = t.columns < COLUMNS_MIN ? COLUMNS_MIN : t.columns;
        size.rows = size.events ? 0 : t.rows < ROWS_MIN ? ROWS_MIN : t.rows;
    }
    if (collect(&g, s, a->operands[0], err) < 0 || screen_print(&g.facts, size, &out, err) < 0)
        return -1;
    fputs(buf_str(&out), stdout);
    return 0;
}

static const struct option_row OPTIONS[] = {
    {"all", 0, NULL, .help = "everything that was found, however long"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj why bert", "The cause on one screen, and what to do."},
    {"kubectl ptj why bert --all", "All that was found."},
    {"kubectl ptj why bert -n team-a --context staging", "A job of another namespace and cluster."},
    {0},
};

const struct verb VERB_WHY = {
    .name = "why",
    .operands = "NAME",
    .operands_min = 1,
    .operands_max = 1,
    .words = VERB_JOBS,
    .options = OPTIONS,
    .examples = EXAMPLES,
    .summary = "say why a job failed or does not run, and what to do",
    .about = "One screen: the cause, where it is (pod, rank, node), the last lines of the log, what the "
             "operator does "
             "next, and what to do. Read are the job's status, its pods with their events, claims, nodes and "
             "log, and the "
             "job's events; a right that is missing costs that part only, and is named.",
    .run = run_why,
};
