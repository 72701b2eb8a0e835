/* cgroup.c - read the files in which the kernel shows a process's cgroup. */
#include "common/cgroup.h"

#include <stdio.h>
#include <string.h>

bool cgroup_first_line(const char *root, const char *path, char *out, int size)
{
    char full[CGROUP_PATH_BYTES];

    if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
        return false;
    FILE *f = fopen(full, "re");
    if (!f)
        return false;
    const bool ok = fgets(out, size, f) != NULL;
    fclose(f);
    if (ok)
        out[strcspn(out, "\n")] = '\0';
    return ok;
}

void cgroup_own(const char *root, char group[static CGROUP_LINE_BYTES])
{
    char line[CGROUP_LINE_BYTES];

    group[0] = '\0';
    if (cgroup_first_line(root, "/proc/self/cgroup", line, sizeof(line)) && strncmp(line, "0::/", 4) == 0)
        snprintf(group, CGROUP_LINE_BYTES, "%s", line + 3);
}
