/* examples.h - the words of a command that --help shows as an example, for tests that give them to the program's own parser. */
#ifndef TK_TESTS_UNIT_EXAMPLES_H
#define TK_TESTS_UNIT_EXAMPLES_H

#include "common/options.h"
#include "test.h"

#include <string.h>

enum { EXAMPLE_WORDS_MAX = 32, EXAMPLE_BYTES_MAX = 512 };

struct example_words {
    char text[EXAMPLE_BYTES_MAX];
    char *argv[EXAMPLE_WORDS_MAX + 1];
    int argc;
};

/* From where `program` stands in the command up to what only the shell reads: | > ; & ). Quotes are taken off. */
static inline struct example_words *example_split(const char *command, const char *program)
{
    static struct example_words w;
    const char *from = strstr(command, program);
    char *to = w.text, quote = '\0';

    if (!from)
        fail_msg("\"%s\" does not run %s", command, program);
    assert_true(strlen(from) < sizeof(w.text));
    w.argc = 0;
    while (*from && (quote || !strchr("|>;&)", *from))) {
        assert_true(w.argc < EXAMPLE_WORDS_MAX);
        w.argv[w.argc++] = to;
        for (; *from && (quote || !strchr(" |>;&)", *from)); from++)
            if (quote ? *from == quote : *from == '\'' || *from == '"')
                quote = quote ? '\0' : *from;
            else
                *to++ = *from;
        *to++ = '\0';
        from += strspn(from, " ");
    }
    assert_false(quote);
    w.argv[w.argc] = NULL;
    return &w;
}

/* Three to five, each with a sentence. */
static inline void expect_examples(const struct option_example *list)
{
    int n = 0;

    for (; list[n].command; n++)
        assert_true(list[n].about && list[n].about[0]);
    assert_in_range(n, 3, 5);
}

#endif
