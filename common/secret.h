/* secret.h - compare secrets in constant time. Pure. */
#ifndef TK_COMMON_SECRET_H
#define TK_COMMON_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes are equal. The time does not depend on where they differ. */
static inline bool secret_equal(const void *a, const void *b, size_t len)
{
    const volatile unsigned char *p = a, *q = b;
    unsigned differs = 0;

    for (size_t i = 0; i < len; i++)
        differs |= (unsigned)(p[i] ^ q[i]);
    return differs == 0;
}

#endif
