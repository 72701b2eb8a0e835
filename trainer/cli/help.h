/* help.h - print `trainer --help` and `trainer NAME --help`. */
#ifndef TK_TRAINER_CLI_HELP_H
#define TK_TRAINER_CLI_HELP_H

#include "common/options.h"
#include "trainer/cli/config.h"

void help_program(FILE *out);
void help_preset(FILE *out, const struct config *cfg);

extern const struct option_example help_program_examples[];

struct help_examples {
    char text[3][160];
    struct option_example list[4];
};

/* Commands that fit where the data of a preset come from. */
void help_preset_examples(const struct config *cfg, struct help_examples *ret);

#endif
