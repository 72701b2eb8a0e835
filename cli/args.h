/* args.h - parse the command line of kubectl-ptj by the table of verbs. Pure.
 *
 * Ownership: strings point into argv or are static; args_release frees the rest.
 * Errors:    ERR_INVALID naming the verb or option, what was given and what was expected.
 */
#ifndef TK_CLI_ARGS_H
#define TK_CLI_ARGS_H

#include "cli/verbs.h"
#include "common/cleanup.h"

#include <stdint.h>

enum { ARGS_OPTIONS_MAX = 256 };

struct args {
    const struct verb *verb; /* NULL: none was given */
    const char **operands;
    int n_operands;
    bool help, version; /* --help and --version of the program or of the verb */
    struct option_given
        set[ARGS_OPTIONS_MAX]; /* each option once: the last one given counts; but for those that repeat */
    int n_set;
};

/* The option that a word names, as "--for" or "-n", without a value in it. NULL: it is none of the verb's (may be NULL) nor a
 * common one. */
const struct option_row *args_option(const struct verb *verb, const char *word);

int args_parse(struct args *a, int argc, char **argv, struct err *err) MUST_CHECK;
void args_release(struct args *a);

/* Values of the verb's own options and of the common ones; the name must be in one of the tables. */
bool args_has(const struct args *a, const char *option);
const char *args_text(const struct args *a, const char *option, const char *fallback);

/* The i-th value (from 0) of an option that repeats; NULL: there are no more. */
const char *args_each(const struct args *a, const char *option, int i);

/* The value of an option_integer. */
int64_t args_i64(const struct args *a, const char *option, int64_t fallback);

#define cleanup_args __attribute__((cleanup(args_release)))

#endif
