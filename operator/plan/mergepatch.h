/* mergepatch.h - the JSON merge patch (RFC 7386) that turns one document into another. Pure. */
#ifndef TK_OPERATOR_PLAN_MERGEPATCH_H
#define TK_OPERATOR_PLAN_MERGEPATCH_H

#include <cjson/cJSON.h>

/* NULL when `from` already is `to`. `from` NULL counts as an empty object. Free with cJSON_Delete. */
cJSON *mergepatch_diff(const cJSON *from, const cJSON *to);

#endif
