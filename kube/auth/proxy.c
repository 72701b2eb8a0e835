/* proxy.c - match NO_PROXY, and choose the proxy of a URL. */
#include "kube/auth/proxy.h"

#include "common/memory.h"
#include "common/sv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_BYTES = 256, ADDRESS_BYTES = 16, V4_PREFIX_BITS = 96 };

/* Of a URL or of "host:port". */
struct place {
    char host[HOST_BYTES]; /* without brackets; "" when it does not fit */
    char port[8];          /* "" when there is none */
};

static void keep(char *to, size_t size, struct sv from)
{
    snprintf(to, size, "%.*s", from.len < size ? (int)from.len : 0, from.p);
}

/* "host", "host:port", "[v6]:port", and a bare v6 address, which has no port. */
static struct place split(struct sv text)
{
    struct place place = {0};
    const char *bracket = text.len && *text.p == '[' ? memchr(text.p, ']', text.len) : NULL;
    const char *colon = memrchr(text.p, ':', text.len);
    const char *first = memchr(text.p, ':', text.len);
    struct sv host = text;

    if (bracket) {
        host = (struct sv){text.p + 1, (size_t)(bracket - text.p - 1)};
        colon = colon && colon > bracket ? colon : NULL;
    } else if (colon && colon == first) {
        host.len = (size_t)(colon - text.p);
    } else {
        colon = NULL;
    }
    keep(place.host, sizeof(place.host), host);
    if (colon)
        keep(place.port, sizeof(place.port), (struct sv){colon + 1, (size_t)(text.p + text.len - colon - 1)});
    return place;
}

static struct sv authority(const char *url)
{
    const char *p = strstr(url, "://");
    p = p ? p + 3 : url;
    size_t len = strcspn(p, "/?#");
    const char *at = memrchr(p, '@', len);

    if (!at)
        return (struct sv){p, len};
    return (struct sv){at + 1, len - (size_t)(at + 1 - p)};
}

int proxy_check(const char *url, struct err *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    bool known = false;

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        known = known || strncmp(url, schemes[i], strlen(schemes[i])) == 0;
    for (const char *p = url; *p; p++)
        known = known && (unsigned char)*p > ' ' && *p != 0x7f;
    int64_t number;
    struct place place = split(authority(url));
    if (known && place.host[0] && (!place.port[0] || sv_i64(sv_from(place.port), 1, 65535, &number)))
        return 0;
    return err_set(err, ERR_INVALID,
                   "expected http://host:port, https://host:port or socks5://host:port, got \"%.*s...\"",
                   (int)strcspn(url, ":/"), url);
}

void proxy_shown(const char *url, char out[static PROXY_SHOWN_BYTES])
{
    struct sv host = authority(url);

    snprintf(out, PROXY_SHOWN_BYTES, "%.*s://%.*s", (int)strcspn(url, ":"), url,
             (int)(host.len < 90 ? host.len : 90), host.p);
}

/* --- NO_PROXY ------------------------------------------------------------------------------------------ */

/* A v4 address is its v4-in-v6 form, so that both spellings are one. */
static bool parse_address(const char *text, unsigned char out[static ADDRESS_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    memcpy(out, mapped, sizeof(mapped));
    return inet_pton(AF_INET, text, out + 12) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

static bool is_v4(const unsigned char a[static ADDRESS_BYTES])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(a, mapped, sizeof(mapped)) == 0;
}

static bool is_loopback(const unsigned char a[static ADDRESS_BYTES])
{
    static const unsigned char one[ADDRESS_BYTES] = {[15] = 1};

    return (is_v4(a) && a[12] == 127) || memcmp(a, one, sizeof(one)) == 0;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
    int whole = bits / 8;

    if (memcmp(a, b, (size_t)whole) != 0)
        return false;
    return bits % 8 == 0 || (a[whole] ^ b[whole]) >> (8 - bits % 8) == 0;
}

struct target {
    struct place place;
    unsigned char address[ADDRESS_BYTES];
    bool is_address;
};

/* False when it is no network at all, so that it may be a name. */
static bool match_network(struct sv entry, const struct target *t, bool *ret)
{
    const char *slash = memchr(entry.p, '/', entry.len);
    unsigned char net[ADDRESS_BYTES];
    char text[HOST_BYTES];
    int64_t bits;

    if (!slash)
        return false;
    keep(text, sizeof(text), (struct sv){entry.p, (size_t)(slash - entry.p)});
    struct sv tail = {slash + 1, (size_t)(entry.p + entry.len - slash - 1)};
    if (!parse_address(text, net) || !sv_i64(tail, 0, is_v4(net) ? 32 : 128, &bits))
        return false;
    *ret = t->is_address && is_v4(net) == is_v4(t->address) &&
           same_bits(net, t->address, (int)bits + (is_v4(net) ? V4_PREFIX_BITS : 0));
    return true;
}

static bool match_name(const char *name, const char *host)
{
    bool itself = *name != '.' && *name != '*';

    if (strncmp(name, "*.", 2) == 0)
        name++;
    size_t n = strlen(name);
    size_t len = strlen(host);
    if (itself && strcasecmp(name, host) == 0)
        return true;
    return len > n && strcasecmp(host + len - n, name) == 0 && (!itself || host[len - n - 1] == '.');
}

static bool match(struct sv entry, const struct target *t)
{
    unsigned char address[ADDRESS_BYTES];
    bool inside = false;

    if (sv_eq(entry, "*"))
        return true;
    if (match_network(entry, t, &inside))
        return inside;
    struct place place = split(entry);
    if (!place.host[0] || (place.port[0] && strcmp(place.port, t->place.port) != 0))
        return false;
    if (parse_address(place.host, address))
        return t->is_address && memcmp(address, t->address, sizeof(address)) == 0;
    return match_name(place.host, t->place.host);
}

bool proxy_bypassed(const char *no_proxy, const char *server)
{
    struct target t = {.place = split(authority(server))};
    struct sv rest = sv_from(no_proxy ? no_proxy : "");
    struct sv entry;

    if (!t.place.port[0])
        snprintf(t.place.port, sizeof(t.place.port), "%s", strncmp(server, "http:", 5) == 0 ? "80" : "443");
    t.is_address = parse_address(t.place.host, t.address);
    if (strcasecmp(t.place.host, "localhost") == 0 || (t.is_address && is_loopback(t.address)))
        return true;
    while (sv_next(&rest, ',', &entry)) {
        entry = sv_trim(entry);
        if (entry.len && match(entry, &t))
            return true;
    }
    return false;
}

int proxy_from_environment(const char *https_proxy, const char *no_proxy, const char *server, char **ret,
                           struct err *err)
{
    char *url = NULL;

    *ret = NULL;
    if (!https_proxy || !*https_proxy || strncmp(server, "https:", 6) != 0 ||
        proxy_bypassed(no_proxy, server))
        return 0;
    if (asprintf(&url, "%s%s", strstr(https_proxy, "://") ? "" : "http://", https_proxy) < 0)
        memory_exhausted();
    if (proxy_check(url, err) < 0) {
        free(url);
        return err_wrap(err, "HTTPS_PROXY");
    }
    *ret = url;
    return 0;
}
