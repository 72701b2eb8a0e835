/* verbs.h - the verbs of kubectl-ptj: what each is called, takes and does. From this table come the parsing of the command
 * line, --help, the man page and the completions.
 *
 * Ownership: everything is static.
 */
#ifndef TK_CLI_VERBS_H
#define TK_CLI_VERBS_H

#include "common/err.h"
#include "common/options.h"

struct args;
struct session;

/* What completes an operand or a value, beside lists of words: names of jobs, or files. */
extern const char *const VERB_JOBS[], *const VERB_FILES[];

enum { VERB_ANY = 1 << 20 }; /* as operands_max: as many as are given */

/* The exit status when the reader of the output is gone, as in `| head`: that of a program which SIGPIPE ends. No message. */
enum { VERB_SIGPIPE = 128 + 13 };

struct verb {
    const char *name;
    const char *operands; /* as in the synopsis: "NAME", "[NAME]"; "" for none */
    int operands_min, operands_max;
    const char *const *words; /* what completes its operands, as in option_row; NULL: nothing */
    const char *summary;      /* a line of `kubectl ptj --help` */
    const char *about;        /* the paragraphs of its DESCRIPTION, separated by empty lines */
    const struct option_row
        *options; /* `set`, where it is there, checks a value only: option_integer or option_choice */
    const struct option_example *examples;
    bool hidden;              /* not in --help and the man page */
    bool offline;             /* it needs no API server: `session` is NULL */
    const char *offline_with; /* ... as little with this option; NULL: there is none */
    /* Whether the command line is right, before a connection is tried; NULL: what the rows say is all. ERR_INVALID of usage.h. */
    int (*check)(const struct args *args, struct err *err);
    /* Returns the exit status, or -1 with *err, which is printed and ends the program with 1, or 2 (usage.h). */
    int (*run)(struct session *session, const struct args *args, struct err *err);
};

/* Each is defined beside its `run`, in a file of its name. */
extern const struct verb VERB_SUSPEND, VERB_RESUME, VERB_SCALE;
extern const struct verb VERB_WATCH, VERB_COMPLETION, VERB_MAN, VERB_COMPLETE;
extern const struct verb VERB_WHY, VERB_LOGS;
extern const struct verb VERB_CONVERT, VERB_RUN, VERB_SUBMIT, VERB_DEBUG, VERB_TENSORBOARD;

/* All verbs in the order of --help; NULL ends the list. */
extern const struct verb *const VERBS[];

/* Options that every verb has, and those of the connection, which offline verbs lack: the namespace, and what is passed on to
 * kubectl as it is. The latter have no help. */
extern const struct option_row VERB_COMMON_OPTIONS[], VERB_NAMESPACE_OPTION[], VERB_KUBECTL_OPTIONS[];

/* Their text in --help and the man page. */
extern const char VERB_KUBECTL_HELP[];

/* All options of a verb, in the order of --help: its own, the namespace, the common ones, kubectl's. Of NULL, the program: all but
 * the first. A list that it lacks is NULL. */
void verb_options(const struct verb *verb, const struct option_row *lists[OPTIONS_LISTS]);

/* Of the program. */
extern const struct option_example VERBS_EXAMPLES[];

const struct verb *verb_find(const char *name); /* NULL: there is none */

/* What to type instead of a word that people know as a verb from elsewhere. NULL: it is none of those. */
const char *verb_instead(const char *name);

#endif
