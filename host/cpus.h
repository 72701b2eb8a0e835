/* cpus.h - the number of CPUs that this process may use.
 *
 * Numerics:  the smaller of the affinity mask and the cgroup's CPU quota (v2 cpu.max, v1 cfs_quota_us),
 *            rounded up, at least 1. In a container with a CPU limit it is that limit, not the node's CPUs.
 */
#ifndef TK_HOST_CPUS_H
#define TK_HOST_CPUS_H

int cpus_usable(void);

/* The same for tests: `root` is put before /sys and /proc, and `affinity` replaces the mask's count. */
int cpus_usable_under(const char *root, int affinity);

#endif
