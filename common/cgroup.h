/* cgroup.h - the files in which the kernel shows a process's cgroup, for who reads its limits.
 *
 * Errors:    none: what cannot be read limits nothing.
 */
#ifndef TK_COMMON_CGROUP_H
#define TK_COMMON_CGROUP_H

#include <stdbool.h>

enum { CGROUP_PATH_BYTES = 1024, CGROUP_LINE_BYTES = 512 };

/* First line of root/path without its newline; false when it cannot be read. */
bool cgroup_first_line(const char *root, const char *path, char *out, int size);

/* The group of this process (v2), "/a/b": without a cgroup namespace it is not the root. "" when there is none. */
void cgroup_own(const char *root, char group[static CGROUP_LINE_BYTES]);

#endif
