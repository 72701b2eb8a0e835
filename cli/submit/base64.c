/* base64.c - encode and decode base64. */
#include "cli/submit/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(const void *bytes, size_t len, struct buf *out, struct err *err)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)p[i] << 16;
        bits |= n > 1 ? (uint32_t)p[i + 1] << 8 : 0;
        bits |= n > 2 ? (uint32_t)p[i + 2] : 0;
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], n > 1 ? digits[bits >> 6 & 63] : '=',
                        n > 2 ? digits[bits & 63] : '='};
        if (buf_append(out, four, sizeof(four), err) < 0)
            return -1;
    }
    return 0;
}

int base64_decode(const char *text, struct buf *out, struct err *err)
{
    uint32_t bits = 0;
    size_t n = 0, padding = 0;

    for (; *text; text++) {
        const char *digit = strchr(digits, *text);
        if (strchr(" \t\r\n", *text))
            continue;
        if (*text == '=' ? ++padding > 2 : !digit || padding)
            return err_set(err, ERR_INVALID, "not base64");
        bits = bits << 6 | (digit ? (uint32_t)(digit - digits) : 0);
        if (++n % 4)
            continue;
        const char three[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        if (buf_append(out, three, sizeof(three) - padding, err) < 0)
            return -1;
    }
    return n % 4 ? err_set(err, ERR_INVALID, "not base64: it ends within four characters") : 0;
}
