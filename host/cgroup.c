/* cgroup.c - read the kernel's files of this process's cgroup. */
#include "host/cgroup.h"

#include "common/cleanup.h"

#include <stdio.h>
#include <string.h>

bool cgroup_first_line(const char *root, const char *path, char *out, int size)
{
    char full[CGROUP_PATH_BYTES];

    if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
        return false;
    cleanup_fclose FILE *f = fopen(full, "re");
    if (!f || !fgets(out, size, f))
        return false;
    out[strcspn(out, "\n")] = '\0';
    return true;
}

uint64_t cgroup_least(const char *root, uint64_t (*limit)(const char *root, const char *group))
{
    char line[CGROUP_LINE_BYTES];
    uint64_t least = limit(root, "");

    if (!cgroup_first_line(root, "/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::/", 4) != 0)
        return least;
    for (char *group = line + 3; strlen(group) > 1; *strrchr(group, '/') = '\0') {
        const uint64_t n = limit(root, group);
        least = n < least ? n : least;
    }
    return least;
}
