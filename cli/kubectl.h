/* kubectl.h - run kubectl: it knows the API server and the user's credentials, and is better at shells and forwarded ports.
 *
 * It is $KUBECTL, or the kubectl of $PATH. In front of the words stand the options of its connection as they were given to us.
 * Errors:    ERR_FATAL: kubectl does not start. ERR_INVALID: too many words.
 */
#ifndef TK_CLI_KUBECTL_H
#define TK_CLI_KUBECTL_H

#include "cli/args.h"

#include <sys/types.h>

struct kubectl_child {
    pid_t pid;
    int out, err; /* what it writes */
};

/* A child in our process group, with our stdin, which ends when we do; NULL ends the words. That kubectl is missing shows at its
 * end: exit status 127. */
int kubectl_start(const struct args *a, const char *const *words, struct kubectl_child *ret,
                  struct err *err) MUST_CHECK;

/* Replace this process by kubectl with these words, in this namespace. Returns only on failure: -1. */
int kubectl_become(const struct args *a, const char *ns, const char *const *words, struct err *err);

#endif
