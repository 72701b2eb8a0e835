/* test_cpus.c - limits as containers show them, in a made-up file system root. */
#include "test.h"

#include "fake_root.h"

#include "common/cleanup.h"
#include "host/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A kernel whose mask has so many CPUs, of which every other may be used; 0: this machine's. */
static size_t kernel_cpus;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (!kernel_cpus)
        return syscall(SYS_sched_getaffinity, pid, bytes, set) < 0 ? -1 : 0;
    if (bytes * 8 < kernel_cpus) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(bytes, set);
    for (size_t i = 0; i < kernel_cpus; i += 2)
        CPU_SET_S(i, bytes, set);
    return 0;
}

struct file {
    const char *path, *text;
};

static void test_the_smallest_limit_holds(void **state)
{
    static const struct {
        struct file files[4];
        int affinity, want;
    } cases[] = {
        {{{0}}, 8, 8},
        {{{0}}, 0, 1},
        {{{"/sys/fs/cgroup/cpu.max", "max 100000\n"}}, 8, 8},
        {{{"/sys/fs/cgroup/cpu.max", "150000 100000\n"}}, 8, 2},
        {{{"/sys/fs/cgroup/cpu.max", "50000 100000\n"}}, 8, 1},
        {{{"/sys/fs/cgroup/cpu.max", "1600000 100000\n"}}, 8, 8},
        {{{"/sys/fs/cgroup/cpu.max", "garbage"}}, 8, 8},
        {{{"/sys/fs/cgroup/cpu.max", "-1 0\n"}}, 8, 8},
        /* Without a namespace: the own group, and every one above it. */
        {{{"/proc/self/cgroup", "0::/kubepods/pod1/c1\n"},
          {"/sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "max 100000\n"},
          {"/sys/fs/cgroup/kubepods/pod1/cpu.max", "300000 100000\n"}},
         8,
         3},
        {{{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}, 8, 2},
        {{{"/proc/self/cgroup", "4:cpu:/x\n"},
          {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n"},
          {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
         8,
         3},
        {{{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
          {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
         8,
         8},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char root[] = "/tmp/test-cpus-XXXXXX";
        assert_non_null(mkdtemp(root));
        for (const struct file *f = cases[i].files; f->path; f++)
            fake_root_put(root, f->path, f->text);
        assert_int_equal(cpus_usable_under(root, cases[i].affinity), cases[i].want);
        fake_root_remove(root);
    }
    assert_true(cpus_usable() >= 1);
}

static void test_masks_larger_than_cpu_set_t(void **state)
{
    (void)state;
    assert_true(cpus_usable() >= 1);
    const int quota = cpus_usable_under("", 1 << 30);
    for (kernel_cpus = 2; kernel_cpus <= 1 << 15; kernel_cpus *= 4) {
        const int n = (int)(kernel_cpus / 2);
        assert_int_equal(cpus_usable(), n < quota ? n : quota);
    }
    kernel_cpus = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_limit_holds),
        cmocka_unit_test(test_masks_larger_than_cpu_set_t),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
