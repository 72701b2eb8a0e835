/* base64.c - encode and decode base64. */
#include "kube/auth/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

int base64_decode(const char *text, struct buf *out, struct err *err)
{
    uint32_t bits = 0;
    int n_bits = 0;
    size_t n = 0;
    size_t pad = 0;

    for (const char *p = text; *p; p++) {
        if (*p == '\n' || *p == '\r')
            continue;
        n++;
        if (*p == '=') {
            pad++;
            continue;
        }
        int d = digit(*p);
        if (d < 0 || pad)
            return err_set(err, ERR_INVALID, "expected base64, got something else at byte %zu",
                           (size_t)(p - text));
        bits = bits << 6 | (uint32_t)d;
        n_bits += 6;
        if (n_bits < 8)
            continue;
        n_bits -= 8;
        if (buf_append(out, (char[]){(char)(bits >> n_bits & 0xff)}, 1, err) < 0)
            return -1;
    }
    if (n % 4 || pad > 2)
        return err_set(err, ERR_INVALID, "expected base64, got %zu characters of it", n);
    return 0;
}

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
