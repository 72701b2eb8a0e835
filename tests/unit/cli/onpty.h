/* onpty.h - kubectl-ptj on a terminal of a given size, for tests: its keys, what is on its screen, its end.
 *
 * Ownership: onpty_end closes the terminal and waits for the program.
 * Order:     onpty_until reads until something is on the screen; it fails the test after a minute.
 */
#ifndef TK_TESTS_CLI_ONPTY_H
#define TK_TESTS_CLI_ONPTY_H

#include "ptj.h"
#include "vt.h"

struct onpty {
    pid_t pid;
    int fd;
    bool hung_up;
    long reads; /* how often something came */
    struct vt vt;
};

/* Begin the program with these arguments (NULL ends them). */
void onpty_start(struct onpty *t, const struct ptj *p, const char *const *args, int columns, int rows);

/* Begin bash there, for which the program is $PTJ; its prompt is "prompt> ". */
void onpty_shell(struct onpty *t, const struct ptj *p, int columns, int rows);

/* Read until the screen has this text, or (onpty_while) has it no more. */
void onpty_until(struct onpty *t, const char *text);
void onpty_while(struct onpty *t, const char *text);

/* Read what is there, for at most so long. Whether anything came. */
bool onpty_read(struct onpty *t, int timeout_ms);

void onpty_keys(struct onpty *t, const char *keys);
void onpty_resize(struct onpty *t, int columns, int rows);

/* Read all that it still writes, and return its exit status; 128 + n: it was ended by signal n. */
int onpty_wait(struct onpty *t);
void onpty_end(struct onpty *t);

/* Whether keys are echoed and come in lines, as a shell expects it. */
bool onpty_is_sane(const struct onpty *t);

#endif
