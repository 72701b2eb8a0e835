/* members.h - iterate over the members of a JSON object that a rank's program wrote; the text may be
 * truncated or not be JSON. error_file.c and progress_file.c call it. Pure.
 *
 * It builds no tree, which a hostile text could make large. The time is linear.
 *
 * Ownership: results point into the text, which ends with a NUL.
 */
#ifndef TK_LAUNCHER_MEMBERS_H
#define TK_LAUNCHER_MEMBERS_H

#include "common/sv.h"

struct json_member {
    struct sv name; /* with its quotes, as written */
    struct sv value;
};

/* Read the next member of the object whose remaining content begins at *p. False: there is none; *p is then
 * at the object's end, if the text has one. */
bool members_next(const char **p, struct json_member *ret);

#endif
