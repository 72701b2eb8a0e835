/* cgroup.h - the files in which the kernel shows a process's cgroup, for who reads its limits.
 *
 * Errors:    none: what cannot be read limits nothing.
 */
#ifndef TK_HOST_CGROUP_H
#define TK_HOST_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { CGROUP_PATH_BYTES = 1024, CGROUP_LINE_BYTES = 512 };

/* First line of root/path without its newline; false when it cannot be read. */
bool cgroup_first_line(const char *root, const char *path, char *out, int size);

/* The least that limit gives (v2) for the root group, "", and for each level of this process's own, "/a/b", "/a": a parent's limit
 * applies, too. Without a cgroup namespace a process's group is not the root. */
uint64_t cgroup_least(const char *root, uint64_t (*limit)(const char *root, const char *group));

#endif
