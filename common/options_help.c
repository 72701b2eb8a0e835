/* options_help.c - print a table of options, and examples, as --help shows them. */
#include "common/options.h"

#include "common/wrap.h"

#include <string.h>

enum { MARGIN = 4, TEXT_MARGIN = 8 };

void options_print(FILE *out, const struct option_row *list,
                   void (*more)(FILE *out, const struct option_row *o, const void *ctx), const void *ctx)
{
    for (const struct option_row *o = list; o && o->name; o++) {
        if (!o->help)
            continue;
        if (o->section)
            fprintf(out, "\n  %s\n", o->section);
        fprintf(out, "%*s", MARGIN, "");
        if (o->letter)
            fprintf(out, "-%c, ", o->letter);
        fprintf(out, "--%s%s%s%s%s\n", o->name, o->optional ? "[" : "", o->value ? "=" : "",
                o->value ? o->value : "", o->optional ? "]" : "");
        wrap_text(out, TEXT_MARGIN, o->help);
        if (more)
            more(out, o, ctx);
    }
}

/* A line that a shell reads; what is too long goes on behind a backslash, in front of an option. */
static void print_command(FILE *out, const char *command)
{
    int column = fprintf(out, "%*s", MARGIN, "");

    while (*command) {
        const char *next = strstr(command + 1, " --");
        const int len = next ? (int)(next - command) : (int)strlen(command);
        const bool folds = column > MARGIN && column + len > WRAP_WIDTH - 2;
        if (folds)
            column = fprintf(out, " \\\n%*s", TEXT_MARGIN, "") - 3;
        column += fprintf(out, "%.*s", len - folds, command + folds);
        command += len;
    }
    fputc('\n', out);
}

void options_print_examples(FILE *out, const struct option_example *list)
{
    if (list)
        fputs("\nEXAMPLES\n", out);
    for (; list && list->command; list++) {
        print_command(out, list->command);
        wrap_text(out, TEXT_MARGIN, list->about);
    }
}
