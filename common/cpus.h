/* cpus.h - how many CPUs this process may really use.
 *
 * Numerics: the smaller of the affinity mask and the control group's quota (v2 cpu.max, v1 cfs_quota_us), rounded
 * up, at least 1. A container of a pod with a CPU limit sees its limit, not the node.
 */
#ifndef TK_COMMON_CPUS_H
#define TK_COMMON_CPUS_H

int cpus_usable(void);

/* The same with the file system's root replaced, for tests: `root` is put before /sys and /proc. */
int cpus_usable_under(const char *root, int affinity);

#endif
