/* cpus.h - how many threads a rank should take when nobody said.
 *
 * Order: OMP_NUM_THREADS, else (CPUs of the affinity mask, at most the cgroup's quota) / ranks of the pod.
 */
#ifndef TK_TRAINER_CPUS_H
#define TK_TRAINER_CPUS_H

/* CPUs that this process may use: affinity and cgroup (v2, v1), at least 1. */
int cpus_available(void);

/* Pure: `omp` is OMP_NUM_THREADS or NULL; a list ("4,2") counts by its first number, as OpenMP has it. Result
 *       is
 * 1..max. */
int cpus_threads(const char *omp, int available, int local_world, int max);

/* Pure: CPUs of a cgroup v2 cpu.max ("200000 100000", "max 100000"), rounded up; 0: no limit, or not
 *       understood. */
int cpus_quota(const char *text);

#endif
