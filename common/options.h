/* options.h - the command line of a program by a table of its options: each row says how the option is read and what --help says
 * of it.
 *
 *     static const struct option_row ROWS[] = {
 *         {"epochs", 'e', "N", option_integer, offsetof(struct config, epochs), 1, 1000, .help = "Passes over the data."},
 *         {"help", 'h', .set = option_flag, .offset = offsetof(struct config, help), .help = "This text."},
 *         {0},
 *     };
 *     struct options_reader r = {{ROWS}, argc, argv, 1, .manual = "program --help"};
 *     struct option_given g;
 *     while ((rc = options_next(&r, &g, err)) > 0)
 *         if (g.row ? option_set(&g, &config, err) < 0 : take_word(&config, g.value) < 0)
 *             return -1;
 *
 * A value stands behind '=' or in the next word, or right behind a letter: --name=V, --name V, -nV. Letters without a value may
 * have others behind them. '-' and '_' are the same inside a name. "--" ends the options; "-" is none.
 *
 * Ownership: texts point into argv and the tables; nothing is allocated.
 * Errors:    ERR_INVALID with the option, what was expected and what was given; of an unknown one its name alone, since its value
 *            may be a secret.
 */
#ifndef TK_COMMON_OPTIONS_H
#define TK_COMMON_OPTIONS_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option_row;

/* Writes the value to the field. `value` is NULL where the row has none, or it may be left out and was. */
typedef int option_set_fn(void *field, const struct option_row *o, const char *value, struct err *err);

struct option_row {
    const char *name;         /* without its dashes; NULL ends a list */
    char letter;              /* of the short form; 0: none */
    const char *value;        /* its name in --help; "FILE...": it may be given several times; NULL: none */
    option_set_fn *set;       /* NULL: option_set is not for this row */
    size_t offset;            /* of the field, in what option_set fills */
    int64_t min, max;         /* of option_integer; `min` of option_choice: the value of its first word */
    double least, most;       /* of option_number */
    const char *const *words; /* what it may be, ended by NULL: for option_choice, and for completion */
    bool optional;            /* its value may be left out; it is never in the next word */
    unsigned needs;           /* bits of the program's; see options_reader.lacks */
    const char *env;          /* the variable that stands for it, which the program reads */
    const char *section;      /* the heading above it in --help; NULL: no new one */
    const char *help;         /* NULL: --help is silent about it */
};

#define OPTION_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The setters, and the type of the field that each writes. */
option_set_fn option_flag;    /* bool: true */
option_set_fn option_bool;    /* bool: true or false; without a value true */
option_set_fn option_text;    /* const char * */
option_set_fn option_integer; /* int64_t */
option_set_fn option_number;  /* double */
option_set_fn option_choice;  /* int */

enum { OPTIONS_LISTS = 4 };

/* The words of a command line, one after the other. What is not said below may be changed between two words. */
struct options_reader {
    const struct option_row *lists[OPTIONS_LISTS]; /* those that are NULL are passed over */
    int argc;
    char *const *argv;
    int at;             /* the next word */
    const char *manual; /* the command that explains the options, for errors */
    unsigned lacks;     /* an option that needs one of these bits is not suggested */
    /* As Python's argparse: a beginning of one name alone stands for it, and what looks like an option is not taken for a value. */
    bool argparse;
    bool ended;          /* by "--" */
    const char *letters; /* its own: what is left of a word of letters */
};

struct option_given {
    const struct option_row *row; /* NULL: a word that is no option, in `value` */
    const char *value;
};

/* 1: *ret is the next option or word. 0: there are no more. -1: error. */
int options_next(struct options_reader *r, struct option_given *ret, struct err *err) MUST_CHECK;

/* Write the value to its field in `fields`. */
int option_set(const struct option_given *g, void *fields, struct err *err) MUST_CHECK;

/* The row of that name, or, with a letter, of that letter; NULL: there is none. */
const struct option_row *option_find(const struct option_row *list, struct sv name, char letter);
const struct option_row *options_find(const struct option_row *const lists[static OPTIONS_LISTS],
                                      struct sv name, char letter);

/* OPTIONS of --help: each row with its text below it. `more` (may be NULL) prints what else is to be said of a row. */
void options_print(FILE *out, const struct option_row *list,
                   void (*more)(FILE *out, const struct option_row *o, const void *ctx), const void *ctx);

/* A command that works, and what it is for. */
struct option_example {
    const char *command; /* NULL ends a list */
    const char *about;
};

/* EXAMPLES, the end of --help. NULL: nothing. */
void options_print_examples(FILE *out, const struct option_example *list);

#endif
