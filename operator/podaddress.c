/* podaddress.c - check which addresses may be polled for progress. */
#include "operator/podaddress.h"

#include "common/cleanup.h"
#include "common/contract.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* The first `bits` bits of an address. */
struct prefix {
    unsigned char bytes[16];
    int bits;
};

/* From IANA's registries of special-purpose addresses, without the private ones that pods have (10/8,
 * 100.64/10, 172.16/12, 192.168/16, fc00::/7). */
static const struct prefix V4_REFUSED[] = {
    {{0}, 8},          /* this network */
    {{127}, 8},        /* loopback */
    {{169, 254}, 16},  /* link-local */
    {{192, 0, 0}, 24}, /* protocol assignments */
    {{224}, 3},        /* multicast, reserved, broadcast */
};
static const struct prefix V6_ALLOWED[] = {
    {{0x20}, 3}, /* global unicast */
    {{0xfc}, 7}, /* unique local */
};
static const struct prefix V6_REFUSED[] = {
    {{0x20, 0x01}, 23}, /* protocol assignments, including Teredo */
    {{0x20, 0x02}, 16}, /* 6to4 */
};

static bool begins(const unsigned char *address, const struct prefix *p)
{
    int whole = p->bits / 8;
    int rest = p->bits % 8;

    if (memcmp(address, p->bytes, (size_t)whole) != 0)
        return false;
    return !rest || (address[whole] ^ p->bytes[whole]) >> (8 - rest) == 0;
}

static bool is_in(const unsigned char *address, const struct prefix *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (begins(address, &list[i]))
            return true;
    return false;
}

bool podaddress_url(const char *ip, char url[static PODADDRESS_URL_BYTES])
{
    unsigned char address[16];
    char text[INET6_ADDRSTRLEN];

    if (inet_pton(AF_INET, ip, address) == 1) {
        if (is_in(address, V4_REFUSED, ARRAY_LEN(V4_REFUSED)))
            return false;
        (void)inet_ntop(AF_INET, address, text, sizeof(text));
        snprintf(url, PODADDRESS_URL_BYTES, "http://%s:%d/progress", text, CONTRACT_PROGRESS_PORT);
        return true;
    }
    if (inet_pton(AF_INET6, ip, address) != 1 || !is_in(address, V6_ALLOWED, ARRAY_LEN(V6_ALLOWED)) ||
        is_in(address, V6_REFUSED, ARRAY_LEN(V6_REFUSED)))
        return false;
    (void)inet_ntop(AF_INET6, address, text, sizeof(text));
    snprintf(url, PODADDRESS_URL_BYTES, "http://[%s]:%d/progress", text, CONTRACT_PROGRESS_PORT);
    return true;
}
