/* options.h - the table of command-line options, by which they are parsed (config_options) and the help is printed. */
#ifndef TK_TRAINER_CLI_OPTIONS_H
#define TK_TRAINER_CLI_OPTIONS_H

#include "common/sv.h"
#include "trainer/cli/config.h"

enum option_kind {
    OPTION_FLAG,
    OPTION_INTEGER,
    OPTION_NUMBER,
    OPTION_TEXT, /* a path, or a name */
    OPTION_CHOICE,
    OPTION_GPT2_SIZE,
};

/* Words for an enum's values from `first` on, in their order. */
struct option_choice {
    int first;
    const char *expected;
    const char *const *words; /* ended by NULL */
};

struct option_row {
    const char *name; /* without dashes, with '_'; NULL: a heading */
    const char *arg;  /* what the value is called; NULL: takes none */
    enum option_kind kind;
    size_t offset; /* of the field in struct config */
    int64_t min, max;
    double min_number, max_number;
    const struct option_choice *choice;
    bool gpt2;   /* for models that are a GPT-2 alone */
    bool tokens; /* for data in tokens alone */
    const char *group;
    const char *help;
};

enum { OPTION_TEXT_MAX = 4000 };

/* The option of that name, '-' being '_'; NULL: there is none. */
const struct option_row *option_row(struct sv name);

/* All of them, in the order of the help; behind the last comes a row without name and group. */
extern const struct option_row option_table[];

#endif
