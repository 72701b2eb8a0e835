/* cgroup.h - read limits from the kernel's files of this process's cgroup.
 *
 * Errors:    none: a file that cannot be read means no limit.
 */
#ifndef TK_HOST_CGROUP_H
#define TK_HOST_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { CGROUP_PATH_BYTES = 1024, CGROUP_LINE_BYTES = 512 };

/* The first line of root/path without its newline. False: the file cannot be read. */
bool cgroup_first_line(const char *root, const char *path, char *out, int size);

/* The least value of limit() (cgroup v2) over the root group "" and each level of this process's group,
 * "/a/b", "/a": limits of parents apply, too. Without a cgroup namespace a process's group is not the root.
 */
uint64_t cgroup_least(const char *root, uint64_t (*limit)(const char *root, const char *group));

#endif
