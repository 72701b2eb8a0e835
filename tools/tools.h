/* tools.h - the trainer's commands besides training: tokenize, convert and generate. For the trainer's main and its help. */
#ifndef TK_TOOLS_TOOLS_H
#define TK_TOOLS_TOOLS_H

#include "trainer/cli/command.h"

extern const struct command command_convert;
extern const struct command command_generate;
extern const struct command command_tokenize;

/* All of them; NULL ends it. */
extern const struct command *const tools[];

#endif
