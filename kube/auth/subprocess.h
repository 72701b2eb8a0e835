/* subprocess.h - run one program to its end without waiting for it: a turn of the loop at a time, no SIGCHLD, no zombies.
 *
 * Ownership: subprocess_free at any time, also from `done`; what still runs is killed with its whole process group. argv and
 *            env are borrowed for the call of subprocess_start.
 * Units:     milliseconds.
 * Errors:    subprocess_start: ERR_NOT_FOUND (no such program), ERR_FATAL (the machine refuses; code = errno).
 * Order:     `done` comes exactly once, from the loop, unless it is freed before.
 *
 * The program has no standard input, its own process group, no descriptor but the first three and no blocked signal.
 * Linux 5.3 (pidfd_open).
 */
#ifndef TK_KUBE_AUTH_SUBPROCESS_H
#define TK_KUBE_AUTH_SUBPROCESS_H

#include "common/sv.h"
#include "kube/loop.h"

enum { SUBPROCESS_TAIL_BYTES = 400 }; /* of standard error: what still fits into a message */

struct subprocess;

struct subprocess_spec {
    const char *const *argv; /* [0]: looked up in PATH when it has no '/'; ends with NULL */
    const char *const *env;  /* the whole environment, ends with NULL */
    size_t output_max_bytes; /* more of it and the group is killed */
    int64_t deadline_ms;     /* from now; then the group is killed */
    void (*done)(void *ctx, struct subprocess *c);
    void *ctx;
};

enum subprocess_end {
    SUBPROCESS_EXITED,   /* code: its exit code */
    SUBPROCESS_KILLED,   /* code: the signal */
    SUBPROCESS_TOO_LATE, /* killed by us at the deadline */
    SUBPROCESS_TOO_MUCH, /* killed by us over output_max_bytes */
    SUBPROCESS_LOST,     /* someone else waited for it (SIGCHLD ignored): how it ended is not known */
};

struct subprocess *subprocess_start(struct kube_loop *l, const struct subprocess_spec *spec,
                                    struct err *err) MUST_CHECK;
void subprocess_free(struct subprocess *c);

/* From `done` on. */
enum subprocess_end subprocess_end(const struct subprocess *c, int *ret_code);
struct sv subprocess_output(const struct subprocess *c); /* until subprocess_free, which wipes it */

/* The end of what it wrote to standard error, as one line of printable text. */
void subprocess_tail(const struct subprocess *c, char out[static SUBPROCESS_TAIL_BYTES + 1]);

#endif
