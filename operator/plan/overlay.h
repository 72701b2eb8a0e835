/* overlay.h - put our fields over a tree that is the user's, member by member. Pure.
 *
 * Ownership: `value` goes to the object.
 */
#ifndef TK_OPERATOR_PLAN_OVERLAY_H
#define TK_OPERATOR_PLAN_OVERLAY_H

#include <cjson/cJSON.h>

/* Set, whatever stood there. */
void overlay_set(cJSON *object, const char *key, cJSON *value);

/* The member, made when it is not an object yet. */
cJSON *overlay_object(cJSON *parent, const char *key);

#endif
