/* numa.c - see numa.h for the rules. */
#include "launcher/numa.h"

#include <stdlib.h>
#include <string.h>

const char *const numa_words[] = {"node", "socket", "exclusive", "core-complex", NULL};

/* A NUMA node with CPUs that may be used. */
struct node {
    int id;
    struct cpuset cpus;
};

struct machine {
    const char *root;
    struct arena *arena; /* of the machine */
    struct arena *pass;  /* of one rank's turn */
    struct node *nodes;  /* [n] by id */
    int n;
    int *slots; /* [n_slots] index of the node of each GPU, or of each rank; -1: of an unused GPU elsewhere */
    int n_slots;
};

/* CPUs of a node that have something in common. */
struct group {
    int key, count;
    struct cpuset cpus;
};

static int read_nodes(struct machine *m, const struct cpuset *allowed, struct err *err)
{
    struct cpuset ids;
    bool whole;

    if (topology_nodes(m->root, &ids, &whole, err) < 0)
        return -1;
    m->nodes = arena_array(m->arena, (size_t)cpuset_count(&ids) + 1, struct node);
    for (int id = cpuset_next(&ids, 0); id >= 0; id = cpuset_next(&ids, id + 1)) {
        struct node *node = &m->nodes[m->n];
        node->id = id;
        node->cpus = *allowed;
        if (!whole) {
            if (topology_node_cpus(m->root, id, &node->cpus, err) < 0)
                return -1;
            cpuset_and(&node->cpus, allowed);
        }
        m->n += cpuset_count(&node->cpus) > 0;
    }
    return m->n ? 0 : err_set(err, ERR_INVALID, "no NUMA node has a CPU that may be used here");
}

static int find_node(const struct machine *m, int id)
{
    for (int i = 0; i < m->n; i++)
        if (m->nodes[i].id == id)
            return i;
    return -1;
}

static int place_slots(struct machine *m, int nproc, const char *visible, struct err *err)
{
    int *gpu_nodes, gpus;

    if (topology_gpu_nodes(m->root, visible, m->arena, &gpu_nodes, &gpus, err) < 0)
        return -1;
    m->n_slots = gpus > nproc ? gpus : nproc;
    m->slots = arena_array(m->arena, (size_t)m->n_slots, int);
    for (int i = 0; i < m->n_slots; i++) {
        m->slots[i] = gpus ? find_node(m, gpu_nodes[i % gpus]) : (int)((int64_t)i * m->n / nproc);
        if (m->slots[i] < 0 && i < nproc)
            return err_set(err, ERR_INVALID, "GPU %d is at NUMA node %d, none of whose CPUs may be used here",
                           i % gpus, gpu_nodes[i % gpus]);
    }
    return 0;
}

/* How many slots a slot's node has, and which of them it is. */
static int among(const struct machine *m, int slot, int *which)
{
    int n = 0;

    for (int i = 0; i < m->n_slots; i++) {
        if (i == slot)
            *which = n;
        n += m->slots[i] == m->slots[slot];
    }
    return n;
}

static int by_key(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* The largest first: an incomplete one is taken last. */
static int by_size(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : by_key(a, b);
}

/* The node's CPUs by what `key_of` says of them; *n groups, in the order of their keys. */
static int divide(const struct machine *m, const struct node *node,
                  int (*key_of)(const char *root, int cpu, int *ret, struct err *err), struct group **ret,
                  int *n, struct err *err)
{
    struct group *groups = arena_array(m->pass, (size_t)cpuset_count(&node->cpus), struct group);

    *n = 0;
    for (int cpu = cpuset_next(&node->cpus, 0); cpu >= 0; cpu = cpuset_next(&node->cpus, cpu + 1)) {
        int key, i = 0;
        if (key_of(m->root, cpu, &key, err) < 0)
            return -1;
        while (i < *n && groups[i].key != key)
            i++;
        *n += i == *n;
        groups[i].key = key;
        groups[i].count++;
        cpuset_add(&groups[i].cpus, cpu);
    }
    qsort(groups, (size_t)*n, sizeof(*groups), by_key);
    *ret = groups;
    return 0;
}

static void add_all(struct cpuset *to, const struct cpuset *from)
{
    CPU_OR_S(sizeof(*to), to->words, to->words, from->words);
}

static int bind_socket(const struct machine *m, int slot, struct cpuset *ret, struct err *err)
{
    int own, other;

    if (topology_socket(m->root, cpuset_next(&m->nodes[m->slots[slot]].cpus, 0), &own, err) < 0)
        return -1;
    for (int i = 0; i < m->n; i++) {
        if (topology_socket(m->root, cpuset_next(&m->nodes[i].cpus, 0), &other, err) < 0)
            return -1;
        if (other == own)
            add_all(ret, &m->nodes[i].cpus);
    }
    return 0;
}

static int bind_exclusive(const struct machine *m, int slot, struct cpuset *ret, struct err *err)
{
    const struct node *node = &m->nodes[m->slots[slot]];
    struct group *cores;
    int n, which = 0;

    if (divide(m, node, topology_core, &cores, &n, err) < 0)
        return -1;
    const int sharers = among(m, slot, &which), each = n / sharers, more = n % sharers;
    if (each < 1)
        return err_set(err, ERR_INVALID, "NUMA node %d has %d cores that may be used for %d GPUs or ranks",
                       node->id, n, sharers);
    const int from = which * each + (which < more ? which : more);
    for (int i = from; i < from + each + (which < more); i++)
        add_all(ret, &cores[i].cpus);
    return 0;
}

static int bind_complex(const struct machine *m, int slot, struct cpuset *ret, struct err *err)
{
    struct group *caches;
    int n, which = 0;

    if (divide(m, &m->nodes[m->slots[slot]], topology_cache, &caches, &n, err) < 0)
        return -1;
    qsort(caches, (size_t)n, sizeof(*caches), by_size);
    among(m, slot, &which);
    *ret = caches[which % n].cpus;
    return 0;
}

static int bind_one(const struct machine *m, enum numa_binding binding, int slot, struct cpuset *ret,
                    struct err *err)
{
    switch (binding) {
    case NUMA_NONE:
        break;
    case NUMA_NODE:
        *ret = m->nodes[m->slots[slot]].cpus;
        break;
    case NUMA_SOCKET:
        return bind_socket(m, slot, ret, err);
    case NUMA_EXCLUSIVE:
        return bind_exclusive(m, slot, ret, err);
    case NUMA_CORE_COMPLEX:
        return bind_complex(m, slot, ret, err);
    }
    return 0;
}

int numa_bind(const char *root, enum numa_binding binding, int nproc, const struct cpuset *allowed,
              const char *visible, struct arena *a, struct cpuset **ret, struct err *err)
{
    cleanup_arena struct arena scratch = {0}, pass = {0};
    struct machine m = {.root = root, .arena = &scratch, .pass = &pass};

    *ret = NULL;
    if (binding == NUMA_NONE)
        return 0;
    struct cpuset *sets = arena_array(a, (size_t)nproc, struct cpuset);
    int rc = read_nodes(&m, allowed, err) < 0 || place_slots(&m, nproc, visible, err) < 0 ? -1 : 0;
    for (int i = 0; rc == 0 && i < nproc; i++) {
        rc = bind_one(&m, binding, i, &sets[i], err);
        arena_release(&pass);
    }
    if (rc < 0)
        return err_wrap(err, "--numa-binding=%s", numa_words[binding - 1]);
    *ret = sets;
    return 0;
}
