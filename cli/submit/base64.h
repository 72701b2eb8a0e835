/* base64.h - encode and decode base64 (RFC 4648) with padding. Pure.
 *
 * Errors:    ERR_INVALID: more than out->max bytes, or a text that is not base64. What was appended before stays.
 */
#ifndef TK_CLI_SUBMIT_BASE64_H
#define TK_CLI_SUBMIT_BASE64_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

int base64_encode(const void *bytes, size_t len, struct buf *out, struct err *err) MUST_CHECK;

/* Spaces and line feeds in the text do not count. */
int base64_decode(const char *text, struct buf *out, struct err *err) MUST_CHECK;

#endif
