/* test_topology.c - lists of CPUs, and GPUs as the driver tells of them. */
#include "common/sv.h"
#include "fake_machine.h"
#include "launcher/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_lists(void **state)
{
    static const struct {
        const char *text;
        int count, last; /* count -1: no list */
    } cases[] = {{"0\n", 1, 0},   {"0-3,8\n", 5, 8}, {"\n", 0, -1},    {"", 0, -1},   {"8190-8191", 2, 8191},
                 {"8192", -1, 0}, {"3-1\n", -1, 0},  {"0-", -1, 0},    {"-3", -1, 0}, {"0-99999", -1, 0},
                 {"a", -1, 0},    {"1,,2", -1, 0},   {"0-1-2", -1, 0}, {"1 2", -1, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cpuset c;
        bool good = cpuset_parse(cases[i].text, &c);
        int last = -1;
        assert_int_equal(good, cases[i].count >= 0);
        if (!good)
            continue;
        assert_int_equal(cpuset_count(&c), cases[i].count);
        for (int cpu = cpuset_next(&c, 0); cpu >= 0; cpu = cpuset_next(&c, cpu + 1))
            last = cpu;
        assert_int_equal(last, cases[i].last);
    }
}

static void test_this_machine(void **state)
{
    struct cpuset allowed, nodes, all = {0}, of;
    struct err err = {0};
    bool whole;

    (void)state;
    assert_int_equal(topology_allowed(&allowed, &err), 0);
    assert_true(cpuset_count(&allowed) >= 1);
    assert_int_equal(topology_nodes("", &nodes, &whole, &err), 0);
    for (int id = cpuset_next(&nodes, 0); id >= 0 && !whole; id = cpuset_next(&nodes, id + 1)) {
        assert_int_equal(topology_node_cpus("", id, &of, &err), 0);
        for (int cpu = cpuset_next(&of, 0); cpu >= 0; cpu = cpuset_next(&of, cpu + 1))
            cpuset_add(&all, cpu);
    }
    for (int cpu = cpuset_next(&allowed, 0); cpu >= 0; cpu = cpuset_next(&allowed, cpu + 1))
        assert_true(whole || cpuset_has(&all, cpu));
}

static void expect_gpus(const char *root, const char *visible, const char *want)
{
    cleanup_arena struct arena a = {0};
    struct err err = {0};
    char got[100] = "";
    int *nodes, n;

    if (topology_gpu_nodes(root, visible, &a, &nodes, &n, &err) < 0) {
        if (!*want || !strstr(err.msg, want))
            fail_msg("%s: %s", want, err.msg);
        return;
    }
    for (int i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%d ", nodes[i]);
    assert_string_equal(got, want);
}

static void test_gpus(void **state)
{
    const char *root = fake_machine_open();

    (void)state;
    expect_gpus(root, NULL, "");
    fake_machine_gpu("0000:dc:00.0", 3, 5);
    fake_machine_gpu("0000:1a:00.0", 0, -1);
    fake_machine_gpu("0000:3b:00.0", 2, 1);
    fake_machine_gpu("0000:2f:00.0", 1, 7);
    expect_gpus(root, NULL, "0 7 1 5 ");
    expect_gpus(root, "3,0", "5 0 ");
    expect_gpus(root, " 2 , GPU-0000", "1 0 ");
    expect_gpus(root, "", "");
    /* The list ends before -1, which hides all by itself. */
    expect_gpus(root, "-1", "");
    expect_gpus(root, "3,-1,0", "5 ");
    expect_gpus(root, "4", "CUDA_VISIBLE_DEVICES=4");
    expect_gpus(root, "0,MIG-1", "no such GPU of 4 here: MIG-1");
    expect_gpus(root, "GPU-", "no such GPU");
    /* Not this container's. */
    fake_machine_remove("/dev/nvidia1");
    expect_gpus(root, NULL, "0 1 5 ");
    expect_gpus(root, "GPU-1", "no such GPU of 3 here");
    fake_machine_put("near\n", "/sys/bus/pci/devices/0000:1a:00.0/numa_node");
    expect_gpus(root, NULL, "expected a number, got \"near");
    fake_machine_remove("/sys/bus/pci/devices/0000:1a:00.0/numa_node");
    expect_gpus(root, NULL, "0000:1a:00.0/numa_node");
    fake_machine_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
