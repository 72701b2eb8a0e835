/* text.h - cutting and mending text that goes into a status or an event. Pure. */
#ifndef TK_OPERATOR_API_TEXT_H
#define TK_OPERATOR_API_TEXT_H

#include "common/sv.h"

/* The last `max` bytes of s at most, never beginning inside a UTF-8 character. */
struct sv text_tail(const char *s, size_t max);

/* The length of the first `max` bytes of s at most, never ending inside a UTF-8 character. */
size_t text_head(const char *s, size_t max);

/* Bytes that are no UTF-8, as a cut inside a character leaves them, become '?': the API server would put another character in
 * their place, and what it then has would never be what was written. */
void text_mend(char *s);

#endif
