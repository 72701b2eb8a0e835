/* numa.h - which CPUs each rank is bound to (--numa-binding). Changes nothing by itself.
 *
 * A rank belongs to the NUMA node of its GPU: GPU i is local rank i's, and ranks beyond the last GPU begin again at the
 * first. Without GPUs the ranks are spread over the nodes in blocks. Then
 *   node:         all CPUs of that node;
 *   socket:       all CPUs of all nodes of its socket;
 *   exclusive:    whole cores of that node, divided among the node's GPUs (or ranks, if those are more);
 *   core-complex: the CPUs under one last-level cache of that node, another one for each of them while there are.
 * Only CPUs that this process may use count.
 *
 * Ownership: results live in the arena.
 * Errors:    ERR_INVALID, ERR_NOT_FOUND: this machine cannot give what was asked for; nothing is guessed.
 */
#ifndef TK_LAUNCHER_NUMA_H
#define TK_LAUNCHER_NUMA_H

#include "launcher/topology.h"

enum numa_binding { NUMA_NONE, NUMA_NODE, NUMA_SOCKET, NUMA_EXCLUSIVE, NUMA_CORE_COMPLEX };

/* The options' words, by enum numa_binding less 1, ended by NULL. */
extern const char *const numa_words[];

/* *ret becomes a set for each of the nproc ranks, NULL for NUMA_NONE. `visible`: CUDA_VISIBLE_DEVICES, or NULL. */
int numa_bind(const char *root, enum numa_binding binding, int nproc, const struct cpuset *allowed,
              const char *visible, struct arena *a, struct cpuset **ret, struct err *err) MUST_CHECK;

#endif
