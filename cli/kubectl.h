/* kubectl.h - run kubectl: it knows the API server and the user's credentials, and is better at shells and forwarded ports.
 *
 * It is $KUBECTL, or the kubectl of $PATH. In front of the words stand the options of its connection as they were given to us.
 * Errors:    ERR_FATAL: kubectl does not start, with its name and why.
 */
#ifndef TK_CLI_KUBECTL_H
#define TK_CLI_KUBECTL_H

#include "cli/args.h"
#include "common/buf.h"

#include <sys/types.h>

struct kubectl_child {
    pid_t pid;
    int out, err; /* what it writes */
};

/* Append those options as a line that a shell reads has them: " --context=c". A secret is left out. They may make the buffer
 * `full` (buf.h). */
void kubectl_options(const struct args *a, struct buf *out);

/* A child in our process group, with our stdin, which ends when we do; NULL ends the words. */
int kubectl_start(const struct args *a, const char *const *words, struct kubectl_child *ret,
                  struct err *err) MUST_CHECK;

/* Send it this signal (0: none) and wait for its end: waitpid's status. `err` can still be read, and is the caller's to close. */
int kubectl_end(struct kubectl_child *c, int signal_number);

/* Replace this process by kubectl with these words, in this namespace. Returns only on failure: -1. */
int kubectl_become(const struct args *a, const char *ns, const char *const *words, struct err *err);

#endif
