/* help.c - print the manual of kubectl-ptj, or of one verb. */
#include "cli/help.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/wrap.h"

#include <string.h>

enum { OPTION_COLUMN = 26 };

static void print_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        char paragraph[2048];
        snprintf(paragraph, sizeof(paragraph), "%.*s", (int)len, text);
        wrap_text(out, 4, paragraph);
        text += len + (text[len] == '\n');
    }
}

static void print_options(FILE *out, const struct verb_option *options)
{
    for (const struct verb_option *o = options; o && o->name; o++) {
        char left[64];
        snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                 o->letter ? ", " : "  ", o->name, o->value ? "=" : "", o->value ? o->value : "");
        fprintf(out, "    %-*s ", OPTION_COLUMN, left);
        if (strlen(left) > OPTION_COLUMN)
            fprintf(out, "\n    %-*s ", OPTION_COLUMN, "");
        fprintf(out, "%s\n", o->help);
    }
}

static void print_kubectls(FILE *out)
{
    cleanup_buf struct buf text = BUF_INIT(2048);

    buf_puts(&text, VERB_KUBECTL_HELP, NULL);
    for (const struct verb_option *o = VERB_KUBECTL_OPTIONS; o->name; o++)
        buf_printf(&text, NULL, " --%s", o->name);
    wrap_text(out, 4, buf_str(&text));
}

static void print_all_options(FILE *out, const struct verb *v)
{
    const struct verb_options all = verb_options(v);

    fputs("\nOPTIONS\n", out);
    for (size_t i = 0; i < ARRAY_LEN(all.lists); i++)
        if (all.lists[i] != VERB_KUBECTL_OPTIONS)
            print_options(out, all.lists[i]);
        else
            print_kubectls(out);
}

static void print_verb(FILE *out, const struct verb *v)
{
    fprintf(out,
            "NAME\n    kubectl ptj %s - %s\n\nSYNOPSIS\n    kubectl ptj %s [OPTIONS]%s%s\n\nDESCRIPTION\n",
            v->name, v->summary, v->name, v->operands[0] ? " " : "", v->operands);
    print_paragraphs(out, v->about);
    print_all_options(out, v);
}

static void print_program(FILE *out)
{
    fputs("NAME\n    kubectl ptj - watch, explain and change training jobs (PyTorchTrainingJob)\n\n"
          "SYNOPSIS\n    kubectl ptj VERB [OPTIONS] [ARGUMENTS]\n\nVERBS\n",
          out);
    for (int i = 0; VERBS[i]; i++)
        if (!VERBS[i]->hidden)
            fprintf(out, "    %-14s %s\n", VERBS[i]->name, VERBS[i]->summary);
    print_all_options(out, NULL);
    fputs("\n    `kubectl ptj VERB --help` explains a verb.\n\n"
          "EXIT STATUS\n    0 when it worked, 1 when it did not, 2 for a command line that is wrong. Verbs "
          "that have others "
          "say so.\n",
          out);
}

void help_print(FILE *out, const struct verb *verb)
{
    if (verb)
        print_verb(out, verb);
    else
        print_program(out);
}
