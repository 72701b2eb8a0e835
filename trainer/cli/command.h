/* command.h - the table of `trainer`'s subcommands (tokenize, convert, generate): name, options, function.
 *
 * Errors: ERR_INVALID and ERR_NOT_FOUND are the user's (exit code 2), what the machine lacks for now ends with 138,
 *         all others with 1.
 */
#ifndef TK_TRAINER_CLI_COMMAND_H
#define TK_TRAINER_CLI_COMMAND_H

#include "common/cleanup.h"
#include "trainer/cli/options.h"

#include <stdio.h>

struct command {
    const char *name;
    const char *synopsis; /* behind the name */
    const char *about;
    const struct option_row *row;
    size_t rows;
    int (*main)(const struct command *c, int argc, char *const *argv, FILE *out, struct err *err);
};

/* Find a subcommand in `commands`, which end with NULL. NULL: there is none of that name. */
const struct command *command_find(const struct command *const *commands, const char *name);

/* The subcommand closest to `name`, for "did you mean"; NULL: `name` is more likely a preset or a path. */
const char *command_meant(const struct command *const *commands, const char *name);

/* Print `trainer NAME --help`. */
void command_help(const struct command *c, FILE *out);

#endif
