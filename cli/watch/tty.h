/* tty.h - take a terminal over for a display that redraws itself, and give it back as it was: at the end, at a stop (Ctrl-Z)
 * and when the program crashes.
 *
 * In between the alternate screen is shown without a cursor, and keys come one by one without an echo; Ctrl-C, Ctrl-Z and
 * Ctrl-\ still send their signals.
 * Threads:   one display per process, since the handler of a crash has to find it.
 */
#ifndef TK_CLI_WATCH_TTY_H
#define TK_CLI_WATCH_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct tty {
    int in, out; /* stdin, -1 if that is no terminal; stdout */
    bool active;
    bool normal;          /* the normal screen is shown meanwhile, not the alternate one */
    struct termios saved; /* of `in` */
};

void tty_init(struct tty *t);

/* Take it over, or again after something else may have changed it. False: this process is in the background. */
bool tty_begin(struct tty *t);
void tty_end(struct tty *t);

/* Show the alternate screen, or the normal one with its cursor for a program that only writes. Keys come one by one in both. */
void tty_alternate(struct tty *t, bool alternate);

/* End, stop this process as Ctrl-Z would have, and return when it continues. */
void tty_stop(struct tty *t);

/* Write all bytes. -1: the terminal is gone. */
int tty_write(const struct tty *t, const void *bytes, size_t len);

#endif
