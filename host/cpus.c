/* cpus.c - count usable CPUs by affinity mask and cgroup quota. */
#include "host/cpus.h"

#include "host/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>

enum { CPUS_MAX = 1 << 20 };

static int quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return INT_MAX;
    long long n = quota / period + (quota % period != 0);
    return n > INT_MAX ? INT_MAX : (int)n;
}

/* The file has "max 100000" or "150000 100000" (quota, period). */
static uint64_t read_cpu_max(const char *root, const char *group)
{
    char path[CGROUP_PATH_BYTES], line[CGROUP_LINE_BYTES];
    long long quota, period;

    if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group) >= (int)sizeof(path) ||
        !cgroup_first_line(root, path, line, sizeof(line)) || sscanf(line, "%lld %lld", &quota, &period) != 2)
        return INT_MAX;
    return (uint64_t)quota_cpus(quota, period);
}

static int v1_cpus(const char *root)
{
    char quota[CGROUP_LINE_BYTES], period[CGROUP_LINE_BYTES];
    long long q, p;

    if (!cgroup_first_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota, sizeof(quota)) ||
        !cgroup_first_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof(period)) ||
        sscanf(quota, "%lld", &q) != 1 || sscanf(period, "%lld", &p) != 1)
        return INT_MAX;
    return quota_cpus(q, p);
}

int cpus_usable_under(const char *root, int affinity)
{
    int n = affinity < 1 ? 1 : affinity;
    int v2 = (int)cgroup_least(root, read_cpu_max), v1 = v1_cpus(root);

    n = v2 < n ? v2 : n;
    return v1 < n ? v1 : n;
}

/* The CPUs of the affinity mask. The kernel's mask may be larger than cpu_set_t; it refuses a smaller one
 * (EINVAL). */
static int in_mask(void)
{
    for (size_t cpus = CPU_SETSIZE; cpus <= CPUS_MAX; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        const size_t bytes = CPU_ALLOC_SIZE(cpus);
        if (!set)
            return 1;
        const int rc = sched_getaffinity(0, bytes, set);
        const int code = errno;
        const int n = rc == 0 ? CPU_COUNT_S(bytes, set) : 1;
        CPU_FREE(set);
        if (rc == 0 || code != EINVAL)
            return n;
    }
    return 1;
}

int cpus_usable(void)
{
    return cpus_usable_under("", in_mask());
}
