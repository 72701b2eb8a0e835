/* command.c - the table of commands. */
#include "trainer/command.h"

#include "common/nearest.h"
#include "trainer/presets/presets.h"
#include "trainer/wrapped.h"

#include <string.h>

static const struct command *const COMMANDS[] = {&command_tokenize, &command_convert, &command_generate,
                                                 &command_choose};

const struct command *command_at(size_t i)
{
    return i < ARRAY_LEN(COMMANDS) ? COMMANDS[i] : NULL;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(COMMANDS[i]->name, name) == 0)
            return COMMANDS[i];
    return NULL;
}

const char *command_meant(const char *name)
{
    struct nearest near = nearest_to(sv_from(name));
    size_t count;
    const struct preset *all = presets(&count);

    if (strpbrk(name, "/.")) /* a path */
        return NULL;
    for (size_t i = 0; i < count; i++)
        nearest_offer(&near, all[i].name);
    const char *preset = near.word;
    for (size_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        nearest_offer(&near, COMMANDS[i]->name);
    return near.word == preset ? NULL : near.word;
}

void command_help(const struct command *c, FILE *out)
{
    fprintf(out, "NAME\n    trainer %s\n\nSYNOPSIS\n    trainer %s %s\n\nDESCRIPTION\n", c->name, c->name,
            c->synopsis);
    wrapped(out, 4, c->about);
    fputs("\nOPTIONS\n", out);
    for (size_t i = 0; i < c->rows; i++) {
        const struct option_row *o = &c->row[i];
        fprintf(out, "    --%s%s%s\n", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        wrapped(out, 8, o->help);
    }
}
