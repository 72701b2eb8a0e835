/* quantity.h - resource quantities of a pod template, as far as to name one that the API server cannot read.
 *
 * The API server answers a pod with such a quantity by 400 and names no path. What it reads passes here.
 *
 * Errors: ERR_INVALID with the path, as in common/json.h.
 */
#ifndef TK_OPERATOR_API_QUANTITY_H
#define TK_OPERATOR_API_QUANTITY_H

#include "common/json.h"

/* "1", "-1.5", ".5Gi", "100m", "2e3". */
bool quantity_is(const char *text);

/* The member `resources` of a container: limits and requests. */
int quantity_check(const struct json_at *container, struct err *err) MUST_CHECK;

#endif
