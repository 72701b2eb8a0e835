/* terminal.h - what stdout is: a terminal of this size, with colours or without, or a pipe or file. For the verbs. */
#ifndef TK_CLI_TERMINAL_H
#define TK_CLI_TERMINAL_H

#include <stdbool.h>

struct terminal {
    bool is_terminal; /* else: no escape sequence is written */
    bool colours;     /* a terminal that can, unless NO_COLOR is set (https://no-color.org) */
    bool unicode;     /* the locale's characters are UTF-8, or are not set */
    int columns, rows;
};

/* 80 by 24 where the size is not known. */
struct terminal terminal_of(int fd);

#endif
