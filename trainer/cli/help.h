/* help.h - print `trainer --help` and `trainer NAME --help`. */
#ifndef TK_TRAINER_CLI_HELP_H
#define TK_TRAINER_CLI_HELP_H

#include "trainer/cli/config.h"

#include <stdio.h>

void help_program(FILE *out);
void help_preset(FILE *out, const struct config *cfg);

#endif
