/* base64.h - encode and decode base64 (RFC 4648) with padding. Pure.
 *
 * Errors:    ERR_INVALID: not base64, or more than out->max bytes. What was appended before stays. Messages
 *            never hold the text, which may be a secret.
 */
#ifndef TK_KUBE_AUTH_BASE64_H
#define TK_KUBE_AUTH_BASE64_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

/* Append the decoded bytes; line ends in `text` are skipped, as by Go's decoder. */
int base64_decode(const char *text, struct buf *out, struct err *err) MUST_CHECK;

int base64_encode(const void *bytes, size_t len, struct buf *out, struct err *err) MUST_CHECK;

#endif
