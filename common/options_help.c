/* options_help.c - print a table of options, and examples, as --help shows them. */
#include "common/options.h"

#include "common/wrap.h"

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

void options_print_examples(FILE *out, const struct option_example *list)
{
    fputs("\nEXAMPLES\n", out);
    for (; list->command; list++) {
        fprintf(out, "%*s%s\n", MARGIN, "", list->command);
        wrap_text(out, TEXT_MARGIN, list->about);
    }
}
