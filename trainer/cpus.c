/* cpus.c - affinity and cgroup quota. */
#include "trainer/cpus.h"

#include "common/buf.h"
#include "common/fsutil.h"
#include "common/sv.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>

int cpus_quota(const char *text)
{
    struct sv rest = sv_trim(sv_from(text));
    struct sv part;
    int64_t quota;
    int64_t period;

    if (!sv_next(&rest, ' ', &part) || !sv_i64(part, 1, INT32_MAX, &quota))
        return 0;
    if (!sv_next(&rest, ' ', &part) || !sv_i64(part, 1, INT32_MAX, &period))
        return 0;
    return (int)((quota + period - 1) / period);
}

static int quota_of_cgroup(void)
{
    cleanup_buf struct buf v2 = BUF_INIT(256);
    cleanup_buf struct buf quota = BUF_INIT(64);
    cleanup_buf struct buf period = BUF_INIT(64);
    struct err err;
    char both[160];

    if (!fs_read("/sys/fs/cgroup/cpu.max", &v2, &err))
        return cpus_quota(buf_str(&v2));
    if (fs_read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota, &err) ||
        fs_read("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period, &err))
        return 0;
    struct sv q = sv_trim(sv_from(buf_str(&quota)));
    snprintf(both, sizeof(both), "%.*s %s", (int)q.len, q.p, buf_str(&period));
    return cpus_quota(both);
}

int cpus_available(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    int quota = quota_of_cgroup();

    if (quota && quota < n)
        n = quota;
    return n > 0 ? n : 1;
}

int cpus_threads(const char *omp, int available, int local_world, int max)
{
    struct sv rest = sv_from(omp);
    struct sv first;
    int64_t n = available / (local_world > 0 ? local_world : 1);
    int64_t said;

    if (omp && sv_next(&rest, ',', &first) && sv_i64(sv_trim(first), 1, INT32_MAX, &said))
        n = said;
    if (n < 1)
        n = 1;
    return n < max ? (int)n : max;
}
