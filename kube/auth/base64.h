/* base64.h - RFC 4648 with padding. Pure.
 *
 * Errors: ERR_INVALID: not base64, or more than out->max bytes. What was appended before stays; never the text itself
 *         in the message, which may be a secret.
 */
#ifndef TK_KUBE_AUTH_BASE64_H
#define TK_KUBE_AUTH_BASE64_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

/* Append what `text` stands for; line ends in it are skipped, as Go's decoder does. */
int base64_decode(const char *text, struct buf *out, struct err *err) MUST_CHECK;

int base64_encode(const void *bytes, size_t len, struct buf *out, struct err *err) MUST_CHECK;

#endif
