/* why.c - kubectl ptj why: what keeps a job from going on, on one screen, or as a JSON object. */
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/texts.h"
#include "cli/why/collect.h"
#include "cli/why/screen.h"
#include "cli/why/whyjson.h"

#include <stdio.h>
#include <unistd.h>

enum { OUT_BYTES = 64 << 20 };

static int print(const struct why_facts *f, bool json, bool all, struct buf *out, struct err *err)
{
    const struct terminal t = terminal_of(STDOUT_FILENO);
    struct screen_size size = {.events = all};

    if (json) {
        cleanup_json cJSON *object = whyjson_of(f);
        return output_json(object, out, err);
    }
    if (isatty(STDOUT_FILENO)) {
        size.columns = t.columns;
        size.rows = all ? 0 : t.rows;
    }
    screen_print(f, size, out);
    return buf_check(out, err);
}

static int run_why(struct session *s, const struct args *a, struct err *err)
{
    cleanup_buf struct buf out = BUF_INIT(OUT_BYTES);
    cleanup_collected struct collected g = {0};

    if (collect(&g, s, a->operands[0], err) < 0 ||
        print(&g.facts, args_has(a, "output"), args_has(a, "all"), &out, err) < 0)
        return -1;
    fputs(buf_str(&out), stdout);
    return 0;
}

static const struct option_row OPTIONS[] = {
    {"all", 0, NULL, .help = "print everything that was found, however long"},
    OUTPUT_OPTION("json: one JSON object"),
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj why bert", "The cause on one screen, and what to do."},
    {"kubectl ptj why bert --all", "All that was found."},
    {"kubectl ptj why bert -n team-a --context staging", "A job of another namespace and cluster."},
    {"kubectl ptj why bert -o json | jq .cause", "The cause, for a script."},
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
    .summary = "explain why a job failed or does not run, and what to do",
    .about = why_txt,
    .run = run_why,
};
