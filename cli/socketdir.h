/* socketdir.h - a folder that only this user may enter, for the socket of `kubectl proxy`. Used by proxy.c only.
 *
 * The folder is $XDG_RUNTIME_DIR/kubectl-ptj-XXXXXX, or /tmp/... where that is not set or too long: the path of a socket ends
 * at 104 bytes on some systems. It is locked while this process lives, so what a process that was killed left behind is known,
 * and is removed when the next one begins. A signal that ends this process removes it, too. With a folder ends who listens there.
 * Errors:    ERR_FATAL: the folder cannot be made or locked.
 */
#ifndef TK_CLI_SOCKETDIR_H
#define TK_CLI_SOCKETDIR_H

#include "common/cleanup.h"
#include "common/err.h"

enum { SOCKETDIR_PATH_BYTES = 104 };

struct socketdir {
    char path[SOCKETDIR_PATH_BYTES];   /* "": there is none */
    char socket[SOCKETDIR_PATH_BYTES]; /* the one file in it */
    int lock;
};

int socketdir_make(struct socketdir *d, struct err *err) MUST_CHECK;
void socketdir_remove(struct socketdir *d);

/* Remove what there is, in a handler of a signal that ends this process. */
void socketdir_leave(void);

#endif
