/* fuzz_argv.h - for readers of command lines: the input is words, one per line; those that begin with '$' are the
 * environment ("$PET_NNODES=2"). */
#ifndef TK_TESTS_FUZZ_FUZZ_ARGV_H
#define TK_TESTS_FUZZ_FUZZ_ARGV_H

#include "fuzz.h"

#include <string.h>

enum { WORDS_MAX = 64 };

struct words {
    char *argv[WORDS_MAX + 1];
    char *env[WORDS_MAX];
    int argc, n_env;
};

static const struct words *current; /* getenv has no context */

static inline char *words_getenv(const char *name)
{
    for (int i = 0; i < current->n_env; i++) {
        char *entry = current->env[i];
        if (strncmp(entry, name, strlen(name)) == 0 && entry[strlen(name)] == '=')
            return entry + strlen(name) + 1;
    }
    return NULL;
}

/* Behind the words that are there; `text` is cut into them. */
static inline void words_split(struct words *w, char *text)
{
    for (char *next = text; next;) {
        char *word = strsep(&next, "\n");
        if (word[0] == '$' && w->n_env < WORDS_MAX)
            w->env[w->n_env++] = word + 1;
        else if (w->argc < WORDS_MAX)
            w->argv[w->argc++] = word;
    }
    w->argv[w->argc] = NULL;
    current = w;
}

#endif
