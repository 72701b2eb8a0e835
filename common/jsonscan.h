/* jsonscan.h - one look at a JSON text before a tree is made of it, for what cJSON does not tell: how large the tree would
 * be, where it would cut a string, which numbers it would change. Pure.
 *
 * Errors: ERR_INVALID; its code is JSON_UNREADABLE (json.h) where the text may be JSON all the same.
 */
#ifndef TK_COMMON_JSONSCAN_H
#define TK_COMMON_JSONSCAN_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/sv.h"

#include <cjson/cJSON.h>

struct jsonscan {
    bool odd_numbers; /* some may not print as they were written */
};

int jsonscan_check(struct sv text, int depth_max, struct jsonscan *ret, struct err *err) MUST_CHECK;

/* Give each number of the tree, which was made from this text, its own text where it would print as another one: in
 * valuestring, which cJSON frees and copies with the node. */
void jsonscan_keep_numbers(cJSON *tree, struct sv text);

#endif
