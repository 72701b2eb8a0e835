/* test_numa.c - machines of several shapes, and the CPUs that their ranks get. */
#include "fake_machine.h"
#include "launcher/numa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *root;

/* "0-3,16 | 4-7": the ranks' sets. */
static void show(const struct cpuset *sets, int n, char *out, size_t size)
{
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *before = i ? " | " : "";
        for (int cpu = cpuset_next(&sets[i], 0), last; cpu >= 0; cpu = cpuset_next(&sets[i], last + 1)) {
            for (last = cpu; last + 1 < TOPOLOGY_CPUS_MAX && cpuset_has(&sets[i], last + 1);)
                last++;
            at += (size_t)snprintf(out + at, size - at, last > cpu ? "%s%d-%d" : "%s%d", before, cpu, last);
            before = ",";
        }
    }
}

/* `want` is the sets, or a part of the error. */
static void expect(enum numa_binding binding, int nproc, const char *allowed, const char *want)
{
    cleanup_arena struct arena a = {0};
    struct cpuset usable, *sets;
    struct err err = {0};
    char got[400];

    assert_true(cpuset_parse(allowed, &usable));
    if (numa_bind(root, binding, nproc, &usable, NULL, &a, &sets, &err) < 0) {
        if (!strstr(err.msg, want))
            fail_msg("wanted %s, got the error: %s", want, err.msg);
        assert_non_null(strstr(err.msg, "--numa-binding="));
        return;
    }
    assert_int_equal(sets == NULL, binding == NUMA_NONE);
    show(sets, sets ? nproc : 0, got, sizeof(got));
    assert_string_equal(got, want);
}

/* Two sockets of two nodes of 4 cores, 2 under a cache: CPUs 0-15, and 16-31 their second threads. */
static void big_machine(void)
{
    root = fake_machine_open();
    fake_machine_cpus(2, 2, 2, 2);
}

static void test_gpus(void **state)
{
    (void)state;
    big_machine();
    fake_machine_gpu("0000:1a:00.0", 0, 1);
    fake_machine_gpu("0000:1b:00.0", 1, 1);
    fake_machine_gpu("0000:9a:00.0", 2, 2);
    expect(NUMA_NONE, 3, "0-31", "");
    expect(NUMA_NODE, 3, "0-31", "4-7,20-23 | 4-7,20-23 | 8-11,24-27");
    expect(NUMA_SOCKET, 3, "0-31", "0-7,16-23 | 0-7,16-23 | 8-15,24-31");
    expect(NUMA_EXCLUSIVE, 3, "0-31", "4-5,20-21 | 6-7,22-23 | 8-11,24-27");
    expect(NUMA_CORE_COMPLEX, 3, "0-31", "4-5,20-21 | 6-7,22-23 | 8-9,24-25");
    /* GPUs that no rank uses keep their part; ranks beyond the last GPU share. */
    expect(NUMA_EXCLUSIVE, 1, "0-31", "4-5,20-21");
    expect(NUMA_NODE, 4, "0-31", "4-7,20-23 | 4-7,20-23 | 8-11,24-27 | 4-7,20-23");
    expect(NUMA_EXCLUSIVE, 4, "0-31", "4-5,20-21 | 6,22 | 8-11,24-27 | 7,23");
    /* What may not be used is nobody's. */
    expect(NUMA_NODE, 1, "0-5,20", "4-5,20");
    expect(NUMA_SOCKET, 1, "0-5", "0-5");
    expect(NUMA_EXCLUSIVE, 2, "4-6,8", "4-5 | 6");
    expect(NUMA_CORE_COMPLEX, 2, "5-7,20,22-31", "6-7,22-23 | 5,20");
    expect(NUMA_EXCLUSIVE, 2, "4,20,8", "NUMA node 1 has 1 cores");
    expect(NUMA_NODE, 1, "8-15", "GPU 0 is at NUMA node 1, none of whose CPUs");
    expect(NUMA_NODE, 1, "40", "no NUMA node has a CPU");
    fake_machine_close();
}

static void test_without_gpus(void **state)
{
    (void)state;
    big_machine();
    expect(NUMA_NODE, 4, "0-31", "0-3,16-19 | 4-7,20-23 | 8-11,24-27 | 12-15,28-31");
    expect(NUMA_NODE, 2, "0-31", "0-3,16-19 | 8-11,24-27");
    expect(NUMA_SOCKET, 2, "0-31", "0-7,16-23 | 8-15,24-31");
    expect(NUMA_EXCLUSIVE, 8, "0-15", "0-1 | 2-3 | 4-5 | 6-7 | 8-9 | 10-11 | 12-13 | 14-15");
    expect(NUMA_CORE_COMPLEX, 8, "0-15", "0-1 | 2-3 | 4-5 | 6-7 | 8-9 | 10-11 | 12-13 | 14-15");
    expect(NUMA_EXCLUSIVE, 3, "0-3", "0-1 | 2 | 3");
    expect(NUMA_EXCLUSIVE, 5, "0-3", "NUMA node 0 has 4 cores that may be used for 5 GPUs or ranks");
    expect(NUMA_CORE_COMPLEX, 3, "0-3", "0-1 | 2-3 | 0-1");
    fake_machine_close();
}

/* Virtual machines leave much of it out. */
static void test_machines_that_do_not_tell(void **state)
{
    (void)state;
    root = fake_machine_open();
    expect(NUMA_NODE, 2, "0-3", "0-3 | 0-3");
    expect(NUMA_SOCKET, 2, "0-3", "physical_package_id");
    expect(NUMA_EXCLUSIVE, 2, "0-3", "thread_siblings_list");
    expect(NUMA_CORE_COMPLEX, 2, "0-3", "does not tell which CPUs share a cache");
    fake_machine_put("0-1\n", "/sys/devices/system/node/online");
    expect(NUMA_NODE, 2, "0-3", "node0/cpulist");
    fake_machine_put("0-1\n", "/sys/devices/system/node/node0/cpulist");
    fake_machine_put("\n", "/sys/devices/system/node/node1/cpulist"); /* memory only */
    expect(NUMA_NODE, 2, "0-3", "0-1 | 0-1");
    fake_machine_put("everything\n", "/sys/devices/system/node/node1/cpulist");
    expect(NUMA_NODE, 2, "0-3", "expected a list like 0-3,8, got \"everything");
    fake_machine_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_without_gpus),
        cmocka_unit_test(test_machines_that_do_not_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
