/* fake_machine.c - see fake_machine.h. */
#include "fake_machine.h"
#include "common/fsutil.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

const char *fake_machine_open(void)
{
    snprintf(root, sizeof(root), "/tmp/test-machine-XXXXXX");
    assert_non_null(mkdtemp(root));
    return root;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void fake_machine_close(void)
{
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void put(const char *path, const char *text)
{
    char full[400];
    struct err err = {0};

    snprintf(full, sizeof(full), "%s%s", root, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(fs_mkdirs(full, &err), 0);
    full[strlen(full)] = '/';
    cleanup_fclose FILE *f = fopen(full, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
}

void fake_machine_put(const char *text, const char *path, ...)
{
    char whole[300];
    va_list args;

    va_start(args, path);
    vsnprintf(whole, sizeof(whole), path, args);
    va_end(args);
    put(whole, text);
}

void fake_machine_remove(const char *path)
{
    char full[400];

    snprintf(full, sizeof(full), "%s%s", root, path);
    assert_int_equal(remove(full), 0);
}

/* The CPUs of `n` cores from core `first` on; `all` is how many cores there are. */
static void list(char *out, size_t size, int first, int n, int all)
{
    snprintf(out, size, "%d-%d,%d-%d\n", first, first + n - 1, all + first, all + first + n - 1);
}

void fake_machine_cpus(int sockets, int nodes, int caches, int cores)
{
    const int per_node = caches * cores, all = sockets * nodes * per_node;
    char text[100];

    snprintf(text, sizeof(text), "0-%d\n", sockets * nodes - 1);
    put("/sys/devices/system/node/online", text);
    for (int node = 0; node < sockets * nodes; node++) {
        list(text, sizeof(text), node * per_node, per_node, all);
        fake_machine_put(text, "/sys/devices/system/node/node%d/cpulist", node);
    }
    for (int cpu = 0; cpu < 2 * all; cpu++) {
        const int core = cpu % all;
        snprintf(text, sizeof(text), "%d\n", core / per_node / nodes);
        fake_machine_put(text, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        snprintf(text, sizeof(text), "%d,%d\n", core, all + core);
        fake_machine_put(text, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        fake_machine_put(text, "/sys/devices/system/cpu/cpu%d/cache/index0/shared_cpu_list", cpu);
        list(text, sizeof(text), core / cores * cores, cores, all);
        fake_machine_put(text, "/sys/devices/system/cpu/cpu%d/cache/index2/shared_cpu_list", cpu);
        /* The instructions' cache claims more than it should count for. */
        fake_machine_put("0\n", "/sys/devices/system/cpu/cpu%d/cache/index1/shared_cpu_list", cpu);
        fake_machine_put("Data\n", "/sys/devices/system/cpu/cpu%d/cache/index0/type", cpu);
        fake_machine_put("Instruction\n", "/sys/devices/system/cpu/cpu%d/cache/index1/type", cpu);
        fake_machine_put("Unified\n", "/sys/devices/system/cpu/cpu%d/cache/index2/type", cpu);
        fake_machine_put("1\n", "/sys/devices/system/cpu/cpu%d/cache/index0/level", cpu);
        fake_machine_put("9\n", "/sys/devices/system/cpu/cpu%d/cache/index1/level", cpu);
        fake_machine_put("3\n", "/sys/devices/system/cpu/cpu%d/cache/index2/level", cpu);
    }
}

void fake_machine_gpu(const char *address, int minor, int node)
{
    char text[300];

    snprintf(text, sizeof(text),
             "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 132\nGPU UUID: \t GPU-%d%d%d%d\n"
             "Bus Location: \t %s\nDevice Minor: \t %d\nGPU Firmware: \t 550.54\n",
             minor, minor, minor, minor, address, minor);
    fake_machine_put(text, "/proc/driver/nvidia/gpus/%s/information", address);
    fake_machine_put("", "/dev/nvidia%d", minor);
    snprintf(text, sizeof(text), "%d\n", node);
    fake_machine_put(text, "/sys/bus/pci/devices/%s/numa_node", address);
}
