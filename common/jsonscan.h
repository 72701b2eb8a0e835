/* jsonscan.h - check a JSON text before cJSON parses it, for what cJSON does not report: the size of the
 * tree, strings that it would cut (NUL), numbers that it would change. Pure.
 *
 * Errors:    ERR_INVALID; with the code JSON_UNREADABLE (json.h) where the text may be valid JSON.
 */
#ifndef TK_COMMON_JSONSCAN_H
#define TK_COMMON_JSONSCAN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

#include <cjson/cJSON.h>

struct jsonscan {
    bool odd_numbers; /* some numbers may not print as they were written */
};

int jsonscan_check(struct sv text, int depth_max, struct jsonscan *ret, struct err *err) MUST_CHECK;

/* For each number of the tree parsed from this text that would print differently, store its own text in
 * valuestring, which cJSON frees and copies with the node. */
void jsonscan_keep_numbers(cJSON *tree, struct sv text);

#endif
