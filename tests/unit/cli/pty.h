/* pty.h - kubectl-ptj on a terminal of a given size, for tests: its keys, what is on its screen, its end.
 *
 * Ownership: pty_end closes the terminal and waits for the program.
 * Order:     pty_until reads until something is on the screen; it fails the test after a minute.
 */
#ifndef TK_TESTS_CLI_PTY_H
#define TK_TESTS_CLI_PTY_H

#include "ptj.h"
#include "vt.h"

struct pty {
    pid_t pid;
    int fd;
    bool hung_up;
    long reads; /* how often something came */
    struct vt vt;
};

/* Begin the program with these arguments (NULL ends them). */
void pty_start(struct pty *t, const struct ptj *p, const char *const *args, int columns, int rows);

/* Read until the screen has this text, or (pty_while) has it no more. */
void pty_until(struct pty *t, const char *text);
void pty_while(struct pty *t, const char *text);

/* Read what is there, for at most so long. Whether anything came. */
bool pty_read(struct pty *t, int timeout_ms);

void pty_keys(struct pty *t, const char *keys);
void pty_resize(struct pty *t, int columns, int rows);

/* Read all that it still writes, and return its exit status; 128 + n: it was ended by signal n. */
int pty_wait(struct pty *t);
void pty_end(struct pty *t);

/* Whether keys are echoed and come in lines, as a shell expects it. */
bool pty_is_sane(const struct pty *t);

#endif
