/* options.h - the table of command-line options, by which they are parsed (config_options) and the help is printed. */
#ifndef TK_TRAINER_CLI_OPTIONS_H
#define TK_TRAINER_CLI_OPTIONS_H

#include "common/options.h"
#include "trainer/cli/config.h"

enum { OPTION_PATH_MAX = 4000 };

/* Bits of option_row.needs: a model that is a GPT-2, data in tokens. */
enum { NEEDS_GPT2 = 1, NEEDS_TOKENS = 2 };

/* All options in the order of the help. */
extern const struct option_row option_table[];

option_set_fn option_path; /* const char *: a path, or a name */

#endif
