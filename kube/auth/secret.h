/* secret.h - a credential in memory, read from a file that may be replaced at any time.
 *
 * Ownership: kube_secret_release wipes and frees; a zeroed struct is a valid empty one.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID (empty, over 1 MiB), ERR_FATAL (reading). Messages never hold the bytes. *s is
 *            untouched on failure.
 */
#ifndef TK_KUBE_AUTH_SECRET_H
#define TK_KUBE_AUTH_SECRET_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

struct kube_secret {
    struct buf bytes; /* len 0: not set */
    char *file;       /* NULL: none */
};

int kube_secret_from_file(struct kube_secret *s, const char *path, struct err *err) MUST_CHECK;

void kube_secret_release(struct kube_secret *s);

/* For tokens: remove trailing white space, and refuse bytes that are not printable, which could end an HTTP
 * header. */
int kube_secret_check_token(struct kube_secret *s, struct err *err) MUST_CHECK;

#endif
