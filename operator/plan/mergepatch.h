/* mergepatch.h - the JSON merge patch (RFC 7386) that turns one document into another. Pure. */
#ifndef TK_OPERATOR_PLAN_MERGEPATCH_H
#define TK_OPERATOR_PLAN_MERGEPATCH_H

#include <cjson/cJSON.h>

/* Returns the patch; free it with cJSON_Delete. NULL: both are equal. `from` NULL counts as an empty object. */
cJSON *mergepatch_diff(const cJSON *from, const cJSON *to);

#endif
