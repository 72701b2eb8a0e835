/* topology.h - which CPUs, cores, caches, sockets, NUMA nodes and GPUs this machine has, as Linux tells in sysfs.
 *
 * All paths are read below `root` ("" is the machine itself, tests give a folder).
 * Errors: ERR_NOT_FOUND (the machine does not tell), ERR_INVALID (what it tells makes no sense), each with the path.
 */
#ifndef TK_LAUNCHER_TOPOLOGY_H
#define TK_LAUNCHER_TOPOLOGY_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <sched.h>
#include <stdbool.h>

/* The most CPUs that Linux can be built for (x86's CONFIG_NR_CPUS). */
enum { TOPOLOGY_CPUS_MAX = 8192 };

/* A set of CPUs (or of NUMA nodes), as sched_setaffinity takes it. */
struct cpuset {
    cpu_set_t words[TOPOLOGY_CPUS_MAX / CPU_SETSIZE];
};

bool cpuset_has(const struct cpuset *c, int cpu);
void cpuset_add(struct cpuset *c, int cpu);
void cpuset_and(struct cpuset *c, const struct cpuset *with);
int cpuset_count(const struct cpuset *c);

/* The lowest one that is not below `from`, or -1. */
int cpuset_next(const struct cpuset *c, int from);

/* "0-3,8\n" of the kernel's lists; false when it is none. An empty list is one. */
bool cpuset_parse(const char *text, struct cpuset *ret);

/* What this process may use. */
int topology_allowed(struct cpuset *ret, struct err *err) MUST_CHECK;

/* NUMA nodes that are online. A machine that tells of none has node 0 with all CPUs: `whole` is true then. */
int topology_nodes(const char *root, struct cpuset *ret, bool *whole, struct err *err) MUST_CHECK;
int topology_node_cpus(const char *root, int node, struct cpuset *ret, struct err *err) MUST_CHECK;

/* Numbers that are equal for CPUs of the same socket, of the same core, under the same last-level cache. */
int topology_socket(const char *root, int cpu, int *ret, struct err *err) MUST_CHECK;
int topology_core(const char *root, int cpu, int *ret, struct err *err) MUST_CHECK;
int topology_cache(const char *root, int cpu, int *ret, struct err *err) MUST_CHECK;

/* The NUMA node of each GPU that a rank may see, in the order of their PCI addresses (CUDA's own order for equal GPUs),
 * or as `visible` (CUDA_VISIBLE_DEVICES; NULL: not set) lists them, up to a -1. */
int topology_gpu_nodes(const char *root, const char *visible, struct arena *a, int **ret, int *n,
                       struct err *err) MUST_CHECK;

#endif
