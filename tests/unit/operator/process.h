/* process.h - the real program in a process of its own, whose output is kept in a file.
 *
 * Ownership: the file lies in a folder that is the test's, and goes with process_remove.
 */
#ifndef TK_TESTS_OPERATOR_PROCESS_H
#define TK_TESTS_OPERATOR_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct process {
    pid_t pid;     /* 0: it does not run */
    int exit_code; /* of one that has ended */
    char log[128]; /* what it writes */
};

/* args[0] is the program, and NULL ends them. It does not outlive a test that fails. */
void process_start(struct process *p, const char *const *args);

bool process_has_ended(struct process *p);

/* Whether its log has this; until it has, which fails the test where it ends before. */
bool process_says(const struct process *p, const char *want);
void process_until_says(struct process *p, const char *want);

/* SIGSTOP, in a system call that waits. */
void process_stop(const struct process *p, unsigned *dice);

/* Waits for its end; by SIGTERM, and well. */
int process_wait(struct process *p);
void process_end(struct process *p);
void process_remove(struct process *p);

/* A draw below a number. */
static inline unsigned process_roll(unsigned *dice, unsigned below)
{
    *dice = *dice * 1103515245 + 12345;
    return (*dice >> 16) % below;
}

#endif
