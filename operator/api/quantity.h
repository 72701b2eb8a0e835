/* quantity.h - check the resource quantities of a pod template, in order to report the path of an invalid
 * one.
 *
 * The API server answers a pod with an invalid quantity with 400 and no path. This check accepts every
 * quantity that the server accepts.
 *
 * Errors:    ERR_INVALID with the path, as in common/json.h.
 */
#ifndef TK_OPERATOR_API_QUANTITY_H
#define TK_OPERATOR_API_QUANTITY_H

#include "common/json.h"

/* Whether `text` is a quantity, such as "1", "-1.5", ".5Gi", "100m", "2e3". */
bool quantity_is(const char *text);

/* Check limits and requests in the member `resources` of a container. */
int quantity_check(const struct json_at *container, struct err *err) MUST_CHECK;

#endif
