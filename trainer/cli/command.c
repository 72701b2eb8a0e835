/* command.c - finds one of the trainer's commands by its name, and prints its help. */
#include "trainer/cli/command.h"

#include "common/nearest.h"
#include "common/wrap.h"
#include "trainer/presets/presets.h"

#include <string.h>

const struct command *command_find(const struct command *const *commands, const char *name)
{
    while (*commands && strcmp((*commands)->name, name) != 0)
        commands++;
    return *commands;
}

const char *command_meant(const struct command *const *commands, const char *name)
{
    struct nearest near = nearest_to(sv_from(name));
    size_t count;
    const struct preset *all = presets(&count);

    if (strpbrk(name, "/.")) /* a path */
        return NULL;
    for (size_t i = 0; i < count; i++)
        nearest_offer(&near, all[i].name);
    const char *preset = near.word;
    for (size_t i = 0; commands[i]; i++)
        nearest_offer(&near, commands[i]->name);
    return near.word == preset ? NULL : near.word;
}

void command_help(const struct command *c, FILE *out)
{
    fprintf(out, "NAME\n    trainer %s\n\nSYNOPSIS\n    trainer %s %s\n\nDESCRIPTION\n", c->name, c->name,
            c->synopsis);
    wrap_text(out, 4, c->about);
    fputs("\nOPTIONS\n", out);
    for (size_t i = 0; i < c->rows; i++) {
        const struct option_row *o = &c->row[i];
        fprintf(out, "    --%s%s%s\n", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        wrap_text(out, 8, o->help);
    }
}
