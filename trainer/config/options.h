/* options.h - the rows of the command line, for its reader and for the help. */
#ifndef TK_TRAINER_CONFIG_OPTIONS_H
#define TK_TRAINER_CONFIG_OPTIONS_H

#include "trainer/config/config.h"

enum option_kind {
    OPTION_FLAG,
    OPTION_INTEGER,
    OPTION_NUMBER,
    OPTION_TEXT,
    OPTION_DATASET,
    OPTION_BACKEND,
    OPTION_LOG_FORMAT,
    OPTION_GPT2_SIZE,
    OPTION_FIXED, /* no field: one value is accepted (`only`) */
};

struct option_row {
    const char *name; /* without dashes, with '_'; NULL: a heading */
    const char *arg;  /* what the value is called; NULL: takes none */
    enum option_kind kind;
    size_t offset; /* of the field in struct config */
    int64_t min, max;
    double min_number, max_number;
    const char *only;
    bool gpt2; /* for models that are a GPT-2 alone */
    const char *group;
    const char *help;
};

const struct option_row *option_rows(size_t *ret_count);

#endif
