/* text.c - cutting text. */
#include "operator/api/text.h"

#include <string.h>

struct sv text_tail(const char *s, size_t max)
{
    size_t len = strlen(s);
    size_t from = len > max ? len - max : 0;

    while (from > 0 && ((unsigned char)s[from] & 0xc0) == 0x80)
        from++;
    return (struct sv){s + from, len - from};
}
