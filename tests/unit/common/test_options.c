/* test_options.c - a command line read by a table: every spelling, every refusal; and the table in --help. */
#include "common/options.h"
#include "common/text.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fields {
    bool dry, leader;
    int64_t epochs;
    double lr;
    const char *file;
    int shell;
};

#define AT(field) offsetof(struct fields, field)

static const struct option_row ROWS[] = {
    {"dry-run", 'd', .set = option_flag, .offset = AT(dry), .section = "What", .help = "Change nothing."},
    {"leader", 0, "BOOL", option_bool, AT(leader), .optional = true, .help = "Lead."},
    {"max_epochs", 'e', "N", option_integer, AT(epochs), 1, 9, .section = "How long", .help = "Passes."},
    {"max-steps", 0, "N", option_integer, AT(epochs), 1, 9, .needs = 1, .help = "Steps."},
    {"lr", 0, "RATE", option_number, AT(lr), .least = 0, .most = 1, .help = "Rate."},
    {0},
};
static const char *const SHELLS[] = {"bash", "zsh", "fish", NULL};
static const struct option_row MORE[] = {
    {"file", 'f', "FILE", option_text, AT(file), .help = "Read this."},
    {"shell", 0, "NAME", option_choice, AT(shell), 5, .words = SHELLS, .help = "Whose."},
    {"silent", .value = "X", .set = option_text, .offset = AT(file)},
    {0},
};

enum { WORDS_MAX = 12 };

/* The fields that `line`, cut at '|', makes, then the words that are no options; or the error. */
static void show(const char *line, bool argparse, char *out, size_t size)
{
    char text[200], *argv[WORDS_MAX], *save;
    struct fields f = {0};
    struct option_given g;
    struct err err;
    int argc = 0, rc;

    snprintf(text, sizeof(text), "%s", line);
    for (char *w = strtok_r(text, "|", &save); w && argc < WORDS_MAX; w = strtok_r(NULL, "|", &save))
        argv[argc++] = w;
    struct options_reader r = {{ROWS, NULL, MORE},   argc,      argv, .manual = "prog --help",
                               .argparse = argparse, .lacks = 1};
    char words[100] = "";
    while ((rc = options_next(&r, &g, &err)) > 0 && (!g.row || option_set(&g, &f, &err) == 0))
        if (!g.row)
            text_add(words, sizeof(words), " %s", g.value);
    out[0] = '\0';
    if (rc != 0) {
        assert_int_equal(err.kind, ERR_INVALID);
        text_add(out, size, "%s", err.msg);
        return;
    }
    text_add(out, size, "%s%s", f.dry ? "dry " : "", f.leader ? "leader " : "");
    if (f.epochs)
        text_add(out, size, "epochs=%lld ", (long long)f.epochs);
    if (f.lr > 0)
        text_add(out, size, "lr=%g ", f.lr);
    if (f.file)
        text_add(out, size, "file=%s ", f.file);
    if (f.shell)
        text_add(out, size, "shell=%d ", f.shell);
    text_add(out, size, ":%s", words);
}

struct line {
    const char *line, *want;
};

static void expect_lines(const struct line *rows, size_t n, bool argparse)
{
    char got[ERR_MSG_BYTES];

    for (size_t i = 0; i < n; i++) {
        show(rows[i].line, argparse, got, sizeof(got));
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: got \"%s\", expected \"%s\"", rows[i].line, got, rows[i].want);
    }
}

static void test_spellings(void **state)
{
    static const struct line rows[] = {
        {"", ":"},
        {"--max_epochs=3", "epochs=3 :"},
        {"--max-epochs|3", "epochs=3 :"},
        {"-e3", "epochs=3 :"},
        {"-e=3", "epochs=3 :"},
        {"-e|3", "epochs=3 :"},
        {"-de3|w", "dry epochs=3 : w"},
        {"-df|x", "dry file=x :"},
        {"--dry_run|--dry-run", "dry :"},
        {"--max_epochs=3|--max-epochs=4", "epochs=4 :"},
        {"--leader|false", "leader : false"},
        {"--leader=true", "leader :"},
        {"--leader|--leader=false", ":"},
        {"--lr|0.5|a|--file=|b", "lr=0.5 file= : a b"},
        {"--file|--dry-run", "file=--dry-run :"},
        {"--file=a=b", "file=a=b :"},
        {"--shell|bash", "shell=5 :"},
        {"--shell=fish|-", "shell=7 : -"},
        {"a|--|--dry-run|--|-x", ": a --dry-run -- -x"},
        {"--file|--|-d", "dry file=-- :"},
        {"--", ":"},
    };

    (void)state;
    expect_lines(rows, ARRAY_LEN(rows), false);
}

static void test_refusals(void **state)
{
    static const struct line rows[] = {
        {"--nope=secret", "--nope: unknown option (prog --help)"},
        {"--dri-run", "--dri-run: unknown option; did you mean --dry-run? (prog --help)"},
        {"--fille=x", "--fille: unknown option; did you mean --file? (prog --help)"},
        {"--max-step", "--max-step: unknown option (prog --help)"}, /* what is nearest cannot be used */
        {"--dry", "--dry: unknown option; did you mean --dry-run? (prog --help)"},
        {"--=4", "--: unknown option (prog --help)"},
        {"-x", "-x: unknown option (prog --help)"},
        {"-dx", "-dx: unknown option (prog --help)"},
        {"-tsecret", "-t: unknown option (prog --help)"}, /* a value may be a secret */
        {"-t=secret", "-t: unknown option (prog --help)"},
        {"-dtsecret", "-dt: unknown option (prog --help)"},
        {"-\xc3\xa9secret", "-\xc3\xa9: unknown option (prog --help)"},
        {"-shel=secret", "-s: unknown option (prog --help)"},
        {"-shell=secret", "-shell: unknown option; did you mean --shell? (prog --help)"},
        {"--dry-run=secret", "--dry-run takes no value"},
        {"-d=secret", "--dry-run takes no value"},
        {"--file", "--file: expected a value: --file=FILE"},
        {"-e", "-e: expected a value: --max_epochs=N"},
        {"--leader=", "--leader: expected true or false, got \"\""},
        {"--max_epochs=10", "--max_epochs: expected an integer 1..9, got \"10\""},
        {"--lr=nan", "--lr: expected a number 0..1, got \"nan\""},
        {"--shell=csh", "--shell: expected bash, zsh or fish, got \"csh\"; did you mean zsh?"},
    };

    (void)state;
    expect_lines(rows, ARRAY_LEN(rows), false);
}

static void test_as_argparse(void **state)
{
    static const struct line rows[] = {
        {"--dry|--fi|x", "dry file=x :"},
        {"--max|3", "--max: expected one of --max_epochs, --max-steps"},
        {"--max_s=3", "epochs=3 :"},
        {"--file|-d", "--file: expected a value: --file=FILE"},
        {"--file|--", "--file: expected a value: --file=FILE"},
        {"--file=-d", "file=-d :"},
        {"--file|-", "file=- :"},
        {"--file|-1", "file=-1 :"},
        {"--file|-.5", "file=-.5 :"},
        {"--file|-a b", "file=-a b :"},
        {"--nope", "--nope: unknown option (prog --help)"},
    };

    (void)state;
    expect_lines(rows, ARRAY_LEN(rows), true);
}

static void test_help(void **state)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    options_print(f, ROWS, NULL, NULL);
    options_print(f, MORE, NULL, NULL);
    options_print_examples(
        f, (const struct option_example[]){
               {"prog --dry-run", "Change nothing."},
               {"prog file-with-a-long-name --max_epochs=3 --lr 0.5 --shell bash -- --file --leader", "All."},
               {0}});
    fclose(f);
    assert_string_equal(text,
                        "\n  What\n    -d, --dry-run\n        Change nothing.\n"
                        "    --leader[=BOOL]\n        Lead.\n"
                        "\n  How long\n    -e, --max_epochs=N\n        Passes.\n"
                        "    --max-steps=N\n        Steps.\n    --lr=RATE\n        Rate.\n"
                        "    -f, --file=FILE\n        Read this.\n    --shell=NAME\n        Whose.\n"
                        "\nEXAMPLES\n    prog --dry-run\n        Change nothing.\n"
                        "    prog file-with-a-long-name --max_epochs=3 --lr 0.5 --shell bash -- --file \\\n"
                        "        --leader\n        All.\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_as_argparse),
        cmocka_unit_test(test_help),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
