/* memory_room.c - read a cgroup's memory limit and usage. */
#include "host/memory_room.h"

#include "common/cleanup.h"
#include "host/cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct names {
    const char *dir, *limit, *used, *caches[2]; /* lines of memory.stat */
};

static const struct names V2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};
static const struct names V1 = {"/sys/fs/cgroup/memory",
                                "memory.limit_in_bytes",
                                "memory.usage_in_bytes",
                                {"total_inactive_file", "total_active_file"}};

static int read_number(const char *root, const struct names *n, const char *group, const char *file,
                       uint64_t *ret)
{
    char path[CGROUP_PATH_BYTES], line[CGROUP_LINE_BYTES];

    if (snprintf(path, sizeof(path), "%s%s/%s", n->dir, group, file) >= (int)sizeof(path) ||
        !cgroup_first_line(root, path, line, sizeof(line)) || sscanf(line, "%" SCNu64, ret) != 1)
        return -1;
    return 0;
}

/* The page cache of files in memory.stat. */
static uint64_t cached(const char *root, const struct names *n, const char *group)
{
    char path[CGROUP_PATH_BYTES], line[CGROUP_LINE_BYTES], name[CGROUP_LINE_BYTES];
    uint64_t sum = 0, bytes;

    if (snprintf(path, sizeof(path), "%s%s%s/memory.stat", root, n->dir, group) >= (int)sizeof(path))
        return 0;
    cleanup_fclose FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%511s %" SCNu64, name, &bytes) == 2 &&
            (strcmp(name, n->caches[0]) == 0 || strcmp(name, n->caches[1]) == 0))
            sum += bytes;
    return sum;
}

static uint64_t room_of(const char *root, const struct names *n, const char *group)
{
    uint64_t limit, used;

    if (read_number(root, n, group, n->limit, &limit) || read_number(root, n, group, n->used, &used))
        return MEMORY_ROOM_ANY;
    const uint64_t cache = cached(root, n, group);
    used -= cache < used ? cache : used;
    return used < limit ? limit - used : 0;
}

static uint64_t v2_room(const char *root, const char *group)
{
    return room_of(root, &V2, group);
}

uint64_t memory_room_under(const char *root)
{
    const uint64_t v2 = cgroup_least(root, v2_room), v1 = room_of(root, &V1, "");

    return v1 < v2 ? v1 : v2;
}

uint64_t memory_room(void)
{
    return memory_room_under("");
}
