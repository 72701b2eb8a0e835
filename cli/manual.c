/* manual.c - the verb that prints kubectl-ptj's man page in roff, from the table of verbs. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

/* Text as one line, so that roff takes no character of it for a command. */
static void print_text(FILE *out, const char *text, size_t len)
{
    if (len && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '-')
            fputs("\\-", out);
        else if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '`' || text[i] == '\'')
            fputs(text[i] == '`' ? "\\(ga" : "\\(aq", out);
        else
            putc(text[i] == '\n' ? ' ' : text[i], out);
    }
}

static void print_word(FILE *out, const char *text)
{
    print_text(out, text, strlen(text));
}

static void print_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *begin = text;
        print_text(out, begin, help_paragraph(begin, &text));
        fputs(*text ? "\n.PP\n" : "\n", out);
    }
}

static void print_bold(FILE *out, const char *dashes, const char *text)
{
    fputs("\\fB", out);
    print_word(out, dashes);
    print_word(out, text);
    fputs("\\fR", out);
}

static void print_options(FILE *out, const struct option_row *options)
{
    for (const struct option_row *o = options; o && o->name; o++) {
        fputs(".TP\n", out);
        if (o->letter) {
            print_bold(out, "-", (const char[]){o->letter, '\0'});
            fputs(", ", out);
        }
        print_bold(out, "--", o->name);
        if (o->value) {
            fputs("=\\fI", out);
            print_word(out, o->value);
            fputs("\\fR", out);
        }
        putc('\n', out);
        print_word(out, o->help);
        putc('\n', out);
    }
}

static void print_examples(FILE *out, const struct option_example *list)
{
    for (; list->command; list++) {
        fputs(".TP\n", out);
        print_bold(out, "", list->command);
        putc('\n', out);
        print_word(out, list->about);
        putc('\n', out);
    }
}

static void print_verb(FILE *out, const struct verb *v)
{
    fputs(".SS \"", out);
    print_word(out, v->name);
    if (v->operands[0])
        putc(' ', out);
    print_word(out, v->operands);
    fputs("\"\n", out);
    print_paragraphs(out, v->about);
    print_options(out, v->options);
    fputs(".PP\nExamples:\n", out);
    print_examples(out, v->examples);
}

static void manual_print(FILE *out)
{
    fputs(".TH KUBECTL\\-PTJ 1 \"\" \"Torchkeeper " CLI_VERSION "\" \"User Commands\"\n"
          ".SH NAME\nkubectl\\-ptj \\- watch, explain and change training jobs (PyTorchTrainingJob)\n"
          ".SH SYNOPSIS\n\\fBkubectl ptj\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
          ".SH VERBS\n",
          out);
    for (int i = 0; VERBS[i]; i++)
        if (!VERBS[i]->hidden)
            print_verb(out, VERBS[i]);
    fputs(".SH OPTIONS\nEvery verb has these:\n", out);
    print_options(out, VERB_COMMON_OPTIONS);
    fputs(".PP\nVerbs that need the API server have these, too:\n", out);
    print_options(out, VERB_NAMESPACE_OPTION);
    fputs(".PP\n", out);
    print_word(out, VERB_KUBECTL_HELP);
    for (const struct option_row *o = VERB_KUBECTL_OPTIONS; o->name; o++) {
        putc('\n', out);
        print_bold(out, "--", o->name);
    }
    putc('\n', out);
    fputs(".SH EXIT STATUS\n0: success. 1: failure. 2: the command line is wrong. The text of a verb lists "
          "its other codes.\n.SH ENVIRONMENT\n.TP\n\\fBKUBECTL\\fR\nthe kubectl to use (default: the one in "
          "$PATH)\n.TP\n\\fBKUBECONFIG\\fR\nas for kubectl\n.TP\n\\fBNO_COLOR\\fR\nset to anything: no "
          "colours\n.TP\n\\fBPTJ_COMPLETION_SECONDS\\fR\nhow long completion waits for the API server, 1 to "
          "600 (default: 2)\n.SH EXAMPLES\n",
          out);
    print_examples(out, VERBS_EXAMPLES);
    fputs(".SH SEE ALSO\n\\fBkubectl\\fR(1)\n", out);
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    (void)s, (void)a, (void)err;
    manual_print(stdout);
    return 0;
}

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj man | man -l -", "Read it."},
    {"kubectl ptj man > kubectl-ptj.1", "Keep it."},
    {"kubectl ptj man | groff -man -Tpdf > kubectl-ptj.pdf", "Print it."},
    {0},
};

const struct verb VERB_MAN = {
    .name = "man",
    .operands = "",
    .summary = "print the man page, in roff",
    .about = "`kubectl ptj man | man -l -` shows it.",
    .examples = EXAMPLES,
    .offline = true,
    .run = run,
};
