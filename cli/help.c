/* help.c - print the manual of kubectl-ptj, or of one verb. */
#include "cli/help.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/memory.h"
#include "common/wrap.h"

#include <string.h>

size_t help_paragraph(const char *text, const char **next)
{
    const char *end = strstr(text, "\n\n");
    const size_t len = end ? (size_t)(end - text) : strlen(text);

    *next = end ? end + 2 : text + len;
    return len && text[len - 1] == '\n' ? len - 1 : len;
}

static void print_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *begin = text;
        cleanup_free char *paragraph = memory_must(strndup(begin, help_paragraph(begin, &text)));
        wrap_text(out, 4, paragraph);
    }
}

static void print_kubectls(FILE *out)
{
    cleanup_buf struct buf text = BUF_INIT(2048);

    buf_puts(&text, VERB_KUBECTL_HELP, NULL);
    for (const struct option_row *o = VERB_KUBECTL_OPTIONS; o->name; o++)
        buf_printf(&text, NULL, " --%s", o->name);
    wrap_text(out, 4, buf_str(&text));
}

static void print_all_options(FILE *out, const struct verb *v)
{
    const struct option_row *lists[OPTIONS_LISTS];

    verb_options(v, lists);
    fputs("\nOPTIONS\n", out);
    for (int i = 0; i < OPTIONS_LISTS; i++)
        options_print(out, lists[i], NULL, NULL);
    if (lists[3])
        print_kubectls(out);
}

static void print_verb(FILE *out, const struct verb *v)
{
    cleanup_buf struct buf name = BUF_INIT(512);

    buf_printf(&name, NULL, "kubectl ptj %s - %s", v->name, v->summary);
    fputs("NAME\n", out);
    wrap_text(out, 4, buf_str(&name));
    fprintf(out, "\nSYNOPSIS\n    kubectl ptj %s [OPTIONS]%s%s\n\nDESCRIPTION\n", v->name,
            v->operands[0] ? " " : "", v->operands);
    print_paragraphs(out, v->about);
    print_all_options(out, v);
    options_print_examples(out, v->examples);
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
    fputs("\n    `kubectl ptj VERB --help` explains a verb.\n\nEXIT STATUS\n", out);
    wrap_text(
        out, 4,
        "0: success. 1: failure. 2: the command line is wrong. The help of a verb lists its other codes.");
    options_print_examples(out, VERBS_EXAMPLES);
}

void help_print(FILE *out, const struct verb *verb)
{
    if (verb)
        print_verb(out, verb);
    else
        print_program(out);
}
