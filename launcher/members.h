/* members.h - the members of a JSON object in a text that a rank's program wrote: the text may be truncated or not be
 * JSON. Pure.
 *
 * Nothing is kept of it: no tree that a hostile text could make large. The time is linear.
 *
 * Ownership: all point into the text, which ends with a NUL.
 */
#ifndef TK_LAUNCHER_MEMBERS_H
#define TK_LAUNCHER_MEMBERS_H

#include "common/sv.h"

#define MEMBERS_SPACES " \t\r\n"

struct member {
    struct sv name; /* with its quotes, as written */
    struct sv value;
};

/* Take the next member of the object whose content, or what is left of it, begins at *p. False: there is none; *p is at the
 * object's end if that is what comes next. */
bool members_next(const char **p, struct member *ret);

#endif
