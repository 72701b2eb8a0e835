/* overlay.h - set the operator's fields in a JSON object of the user. Pure.
 *
 * Ownership: `value` then belongs to the object.
 */
#ifndef TK_OPERATOR_PLAN_OVERLAY_H
#define TK_OPERATOR_PLAN_OVERLAY_H

#include <cjson/cJSON.h>

/* Set the member; an existing one is replaced. */
void overlay_set(cJSON *object, const char *key, cJSON *value);

/* Return the member; if it is not an object, an empty object replaces it. */
cJSON *overlay_object(cJSON *parent, const char *key);

#endif
