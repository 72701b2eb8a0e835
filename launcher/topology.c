/* topology.c - sets of CPUs, and sysfs. */
#include "common/fsutil.h"
#include "common/sv.h"
#include "launcher/topology_files.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { CACHES_MAX = 16 };

#define SYS_CPU "/sys/devices/system/cpu/cpu%d"
#define SYS_NODE "/sys/devices/system/node"

bool cpuset_has(const struct cpuset *c, int cpu)
{
    return CPU_ISSET_S((size_t)cpu, sizeof(*c), c->words);
}

void cpuset_add(struct cpuset *c, int cpu)
{
    CPU_SET_S((size_t)cpu, sizeof(*c), c->words);
}

void cpuset_and(struct cpuset *c, const struct cpuset *with)
{
    CPU_AND_S(sizeof(*c), c->words, c->words, with->words);
}

int cpuset_count(const struct cpuset *c)
{
    return CPU_COUNT_S(sizeof(*c), c->words);
}

int cpuset_next(const struct cpuset *c, int from)
{
    for (; from < TOPOLOGY_CPUS_MAX; from++)
        if (cpuset_has(c, from))
            return from;
    return -1;
}

bool cpuset_parse(const char *text, struct cpuset *ret)
{
    struct sv rest = sv_trim(sv_from(text)), part;

    *ret = (struct cpuset){0};
    while (rest.len && sv_next(&rest, ',', &part)) {
        struct sv last = part, first;
        int64_t from, to;
        sv_next(&last, '-', &first);
        if (!sv_i64(first, 0, TOPOLOGY_CPUS_MAX - 1, &from))
            return false;
        to = from;
        if (first.len < part.len && !sv_i64(last, from, TOPOLOGY_CPUS_MAX - 1, &to))
            return false;
        for (; from <= to; from++)
            cpuset_add(ret, (int)from);
    }
    return true;
}

int topology_allowed(struct cpuset *ret, struct err *err)
{
    *ret = (struct cpuset){0};
    if (sched_getaffinity(0, sizeof(*ret), ret->words) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot tell which CPUs may be used");
    return 0;
}

int topology_read(const char *root, struct buf *out, struct err *err, const char *fmt, ...)
{
    char path[TOPOLOGY_PATH_BYTES], full[2 * TOPOLOGY_PATH_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    snprintf(full, sizeof(full), "%s%s", root, path);
    buf_clear(out);
    return fs_read(full, out, err);
}

static int read_cpus(const char *root, const char *path, struct cpuset *ret, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(TOPOLOGY_FILE_BYTES);

    if (topology_read(root, &text, err, "%s", path) < 0)
        return -1;
    return cpuset_parse(buf_str(&text), ret)
               ? 0
               : err_set(err, ERR_INVALID, "%s%s: expected a list like 0-3,8, got \"%.40s\"", root, path,
                         buf_str(&text));
}

int topology_number(const char *root, const char *path, int min, int *ret, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(TOPOLOGY_FILE_BYTES);
    int64_t number;

    if (topology_read(root, &text, err, "%s", path) < 0)
        return -1;
    if (!sv_i64(sv_trim(sv_from(buf_str(&text))), min, 1 << 30, &number))
        return err_set(err, ERR_INVALID, "%s%s: expected a number, got \"%.40s\"", root, path,
                       buf_str(&text));
    *ret = (int)number;
    return 0;
}

int topology_nodes(const char *root, struct cpuset *ret, bool *whole, struct err *err)
{
    struct err why = {0};

    *whole = false;
    if (read_cpus(root, SYS_NODE "/online", ret, &why) == 0)
        return 0;
    if (why.kind != ERR_NOT_FOUND) {
        *err = why;
        return -1;
    }
    *whole = true;
    *ret = (struct cpuset){0};
    cpuset_add(ret, 0);
    return 0;
}

int topology_node_cpus(const char *root, int node, struct cpuset *ret, struct err *err)
{
    char path[TOPOLOGY_PATH_BYTES];

    snprintf(path, sizeof(path), SYS_NODE "/node%d/cpulist", node);
    return read_cpus(root, path, ret, err);
}

int topology_socket(const char *root, int cpu, int *ret, struct err *err)
{
    char path[TOPOLOGY_PATH_BYTES];

    snprintf(path, sizeof(path), SYS_CPU "/topology/physical_package_id", cpu);
    return topology_number(root, path, -1, ret, err);
}

/* The lowest CPU of a list stands for all of them. */
static int read_lowest(const char *root, const char *path, int *ret, struct err *err)
{
    struct cpuset all;

    if (read_cpus(root, path, &all, err) < 0)
        return -1;
    *ret = cpuset_next(&all, 0);
    return *ret >= 0 ? 0 : err_set(err, ERR_INVALID, "%s%s: expected a CPU, got none", root, path);
}

int topology_core(const char *root, int cpu, int *ret, struct err *err)
{
    char path[TOPOLOGY_PATH_BYTES];

    snprintf(path, sizeof(path), SYS_CPU "/topology/thread_siblings_list", cpu);
    return read_lowest(root, path, ret, err);
}

int topology_cache(const char *root, int cpu, int *ret, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(TOPOLOGY_FILE_BYTES);
    struct err why = {0};
    char path[TOPOLOGY_PATH_BYTES];
    int top = 0;

    for (int i = 0; i < CACHES_MAX; i++) {
        int level;
        if (topology_read(root, &text, &why, SYS_CPU "/cache/index%d/type", cpu, i) < 0)
            break;
        const struct sv type = sv_trim(sv_from(buf_str(&text)));
        if (!sv_eq(type, "Unified") && !sv_eq(type, "Data"))
            continue;
        snprintf(path, sizeof(path), SYS_CPU "/cache/index%d/level", cpu, i);
        if (topology_number(root, path, 0, &level, err) < 0)
            return -1;
        if (level <= top)
            continue;
        top = level;
        snprintf(path, sizeof(path), SYS_CPU "/cache/index%d/shared_cpu_list", cpu, i);
        if (read_lowest(root, path, ret, err) < 0)
            return -1;
    }
    return top ? 0
               : err_set(err, ERR_NOT_FOUND, "%s" SYS_CPU "/cache does not tell which CPUs share a cache",
                         root, cpu);
}
