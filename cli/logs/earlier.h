/* earlier.h - print what a job's status saved of failed attempts. For `kubectl ptj logs --previous`. Pure.
 *
 * Errors:    those of buf.h.
 */
#ifndef TK_CLI_LOGS_EARLIER_H
#define TK_CLI_LOGS_EARLIER_H

#include "common/buf.h"
#include "operator/api/jobstatus.h"

#include <regex.h>

/* `grep`: only the lines that fit this pattern, and the failures that have such lines; NULL: all. */
int earlier_print(const struct jobstatus *st, const regex_t *grep, struct buf *out,
                  struct err *err) MUST_CHECK;

#endif
