/* process.h - the real program against a fake API server, in a process of its own that can be stopped.
 *
 * Ownership: what it has on disk lies in its folder, which is the test's, and goes with process_remove.
 */
#ifndef TK_TESTS_OPERATOR_PROCESS_H
#define TK_TESTS_OPERATOR_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct process {
    pid_t pid;       /* 0: it does not run */
    const char *dir; /* for its token and its log */
    int number;      /* its token is operator-NUMBER */
};

/* With a lease of 3 s in the namespace "sys". */
void process_start(struct process *p, const char *program, const char *url);

/* Whether its log has this. */
bool process_says(const struct process *p, const char *want);

/* SIGSTOP, in a system call that waits. */
void process_stop(const struct process *p, unsigned *dice);

void process_end(struct process *p); /* by SIGTERM, and well */
void process_remove(struct process *p);

/* A draw below a number. */
static inline unsigned process_roll(unsigned *dice, unsigned below)
{
    *dice = *dice * 1103515245 + 12345;
    return (*dice >> 16) % below;
}

#endif
