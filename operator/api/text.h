/* text.h - cutting text that goes into a status or an event. Pure. */
#ifndef TK_OPERATOR_API_TEXT_H
#define TK_OPERATOR_API_TEXT_H

#include "common/sv.h"

/* The last `max` bytes of s at most, never beginning inside a UTF-8 character. */
struct sv text_tail(const char *s, size_t max);

#endif
