/* quantity.h - read resource quantities, and check those of a pod template, in order to report the path of an
 * invalid one.
 *
 * The API server answers a pod with an invalid quantity with 400 and no path. This check accepts every
 * quantity that the server accepts.
 *
 * Errors:    ERR_INVALID with the path, as in common/json.h.
 */
#ifndef TK_OPERATOR_API_QUANTITY_H
#define TK_OPERATOR_API_QUANTITY_H

#include "common/json.h"

/* The value of a quantity, such as "1", "-1.5", ".5Gi", "100m", "2e3". False: `text` is none. */
bool quantity_read(const char *text, double *ret);

/* The value of a member of limits or requests; 0: it is no quantity. */
double quantity_amount(const cJSON *q);

/* Check limits and requests in the member `resources` of a container. */
int quantity_check(const struct json_at *container, struct err *err) MUST_CHECK;

#endif
