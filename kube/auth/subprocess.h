/* subprocess.h - run a program under the event loop and collect its output, without SIGCHLD and without
 * zombies.
 *
 * Ownership: subprocess_free may be called at any time, also from `done`; a program that still runs is killed
 *            with its process group. argv and env are borrowed for the call of subprocess_start.
 * Units:     milliseconds.
 * Errors:    subprocess_start: ERR_NOT_FOUND (no such program), ERR_FATAL (a system call failed; code =
 *            errno).
 * Order:     `done` is called exactly once, from the loop, unless it is freed before.
 *
 * The program has /dev/null as standard input, its own process group, no descriptors but the first three, and
 * no blocked signals. Requires Linux 5.3 (pidfd_open).
 */
#ifndef TK_KUBE_AUTH_SUBPROCESS_H
#define TK_KUBE_AUTH_SUBPROCESS_H

#include "common/sv.h"
#include "kube/loop.h"

enum { SUBPROCESS_TAIL_BYTES = 400 }; /* kept of standard error, so that it fits into a message */

struct subprocess;

struct subprocess_spec {
    const char *const *argv; /* [0] is looked up in PATH when it has no '/'; ends with NULL */
    const char *const *env;  /* the whole environment, ends with NULL */
    size_t output_max_bytes; /* the process group is killed when it writes more */
    int64_t deadline_ms;     /* from now; then the process group is killed */
    void (*done)(void *ctx, struct subprocess *c);
    void *ctx;
};

enum subprocess_end {
    SUBPROCESS_EXITED,   /* code: its exit code */
    SUBPROCESS_KILLED,   /* code: the signal number */
    SUBPROCESS_TOO_LATE, /* killed at the deadline */
    SUBPROCESS_TOO_MUCH, /* killed because of output_max_bytes */
    SUBPROCESS_LOST,     /* its exit status is lost because SIGCHLD is ignored */
};

struct subprocess *subprocess_start(struct kube_loop *l, const struct subprocess_spec *spec,
                                    struct err *err) MUST_CHECK;
void subprocess_free(struct subprocess *c);

/* Valid from `done` on. */
enum subprocess_end subprocess_end(const struct subprocess *c, int *ret_code);
struct sv subprocess_output(const struct subprocess *c); /* until subprocess_free, which wipes it */

/* The end of its standard error, as one line of printable text. */
void subprocess_tail(const struct subprocess *c, char out[static SUBPROCESS_TAIL_BYTES + 1]);

#endif
