/* tools.c - the table of the trainer's commands besides training. */
#include "tools/tools.h"

const struct command *const tools[] = {&command_tokenize, &command_convert, &command_generate, NULL};
