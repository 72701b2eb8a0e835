/* credential.h - a credential in memory, read from a file that may be replaced at any time.
 *
 * Ownership: kube_credential_release wipes and frees; a zeroed struct is a valid empty one.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID (empty, over 1 MiB), ERR_FATAL (reading). Messages never contain the
 *            bytes. *s is untouched on failure.
 */
#ifndef TK_KUBE_AUTH_CREDENTIAL_H
#define TK_KUBE_AUTH_CREDENTIAL_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

struct kube_credential {
    struct buf bytes; /* len 0: not set */
    char *file;       /* NULL: none */
};

int kube_credential_from_file(struct kube_credential *s, const char *path, struct err *err) MUST_CHECK;

void kube_credential_release(struct kube_credential *s);

/* For tokens: remove trailing white space, and refuse bytes that are not printable, which could end an HTTP
 * header. */
int kube_credential_check_token(struct kube_credential *s, struct err *err) MUST_CHECK;

#endif
