/* earlier.h - print what a job's status kept of attempts that failed. For `kubectl ptj logs --previous`. Pure.
 *
 * Errors:    those of buf.h.
 */
#ifndef TK_CLI_LOGS_EARLIER_H
#define TK_CLI_LOGS_EARLIER_H

#include "common/buf.h"
#include "operator/api/jobstatus.h"

int earlier_print(const struct jobstatus *st, struct buf *out, struct err *err) MUST_CHECK;

#endif
