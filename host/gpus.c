/* gpus.c - count device files, and the entries of CUDA_VISIBLE_DEVICES. */
#include "host/gpus.h"
#include "common/cleanup.h"
#include "common/memory.h"
#include "common/sv.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { VISIBLE_MAX = 1024 };

int gpus_devices(const char *dev)
{
    cleanup_closedir DIR *d = opendir(dev);
    int n = 0;

    if (!d && errno == ENOMEM)
        memory_exhausted(); /* returning 0 would train on CPUs */
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *digits = strncmp(e->d_name, "nvidia", 6) == 0 ? e->d_name + 6 : "";
        n += digits[0] && strspn(digits, "0123456789") == strlen(digits);
    }
    return n;
}

/* The number at the begin of an entry, as strtoul reads it: "1gpu2" is 1. -1: no number, or a negative one. */
static int64_t number_of(struct sv entry)
{
    const struct sv text = sv_trim(entry);
    size_t sign = text.len && (text.p[0] == '+' || text.p[0] == '-'), end = sign;
    int64_t n = 0;

    for (; end < text.len && text.p[end] >= '0' && text.p[end] <= '9' && n < 1 << 20; end++)
        n = 10 * n + (text.p[end] - '0');
    return end == sign || (sign && text.p[0] == '-' && n) ? -1 : n;
}

/* The number of entries before the first one without the prefix. */
static int count_names(struct sv list, const char *prefix)
{
    struct sv seen[VISIBLE_MAX], entry;
    int n = 0;

    while (n < VISIBLE_MAX && list.len && sv_next(&list, ',', &entry) && sv_starts(entry, prefix)) {
        for (int i = 0; i < n; i++)
            if (seen[i].len == entry.len && memcmp(seen[i].p, entry.p, entry.len) == 0)
                return 0;
        seen[n++] = entry;
    }
    return n;
}

static int count_numbers(struct sv list, int devices)
{
    int64_t seen[VISIBLE_MAX];
    struct sv entry;
    int n = 0, there = -1;

    while (n < VISIBLE_MAX && list.len && sv_next(&list, ',', &entry)) {
        const int64_t x = number_of(entry);
        for (int i = 0; i < n; i++)
            if (seen[i] == x)
                return 0;
        if (x < 0)
            break;
        if (x >= devices && there < 0)
            there = n; /* continue: a duplicate after it still leaves none */
        seen[n++] = x;
    }
    return there < 0 ? n : there;
}

int gpus_visible(const char *visible, int devices)
{
    if (!visible || devices <= 0)
        return devices > 0 ? devices : 0;
    const struct sv list = sv_from(visible);
    if (sv_starts(list, "MIG-"))
        return count_names(list, "MIG-");
    if (!sv_starts(list, "GPU-"))
        return count_numbers(list, devices);
    const int n = count_names(list, "GPU-");
    return n < devices ? n : devices;
}
