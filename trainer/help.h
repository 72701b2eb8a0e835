/* help.h - what `trainer --help` and `trainer NAME --help` say. */
#ifndef TK_TRAINER_HELP_H
#define TK_TRAINER_HELP_H

#include "trainer/config/config.h"

#include <stdio.h>

void help_program(FILE *out);
void help_preset(FILE *out, const struct config *cfg);

#endif
