/* options.h - tables of command-line options, used to parse them and to print the help.
 *
 * Ownership: texts are borrowed from argv.
 * Errors:    ERR_INVALID naming the option, what was given and what was expected.
 */
#ifndef TK_TRAINER_CLI_OPTIONS_H
#define TK_TRAINER_CLI_OPTIONS_H

#include "common/sv.h"
#include "trainer/cli/config.h"

enum option_kind {
    OPTION_FLAG,
    OPTION_INTEGER,
    OPTION_NUMBER,
    OPTION_TEXT, /* a path, or a name */
    OPTION_DATASET,
    OPTION_BACKEND,
    OPTION_LOG_FORMAT,
    OPTION_GPT2_SIZE,
    OPTION_PRECISION,
};

struct option_row {
    const char *name; /* without dashes, with '_'; NULL: a heading */
    const char *arg;  /* what the value is called; NULL: takes none */
    enum option_kind kind;
    size_t offset; /* of the field in struct config */
    int64_t min, max;
    double min_number, max_number;
    bool gpt2;   /* for models that are a GPT-2 alone */
    bool tokens; /* for data in tokens alone */
    const char *group;
    const char *help;
};

/* The options of training runs; they set fields of struct config. */
const struct option_row *option_rows(size_t *ret_count);

struct option_table {
    const struct option_row *row;
    size_t len;
    const char *called; /* what stands between "trainer" and the options, for messages */
    int (*word)(void *into, const char *text, struct err *err); /* takes what is no option */
    int (*check)(const void *into, const struct option_row *o,
                 struct err *err); /* may it be used? NULL: all may */
};

/* NULL: none. "batch-size" and "batch_size" are the same. */
const struct option_row *option_find(const struct option_table *t, struct sv name);

/* Set the row's field of *into to `value`. */
int option_apply(const struct option_row *o, const char *value, void *into, struct err *err) MUST_CHECK;

/* All of argv. Of an option given twice the last one counts. */
int option_parse(const struct option_table *t, int argc, char *const *argv, void *into,
                 struct err *err) MUST_CHECK;

#endif
