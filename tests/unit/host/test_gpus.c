/* test_gpus.c - device files, and what CUDA_VISIBLE_DEVICES leaves of them, as PyTorch 2.15 counts it. */
#include "failing.h"
#include "test.h"

#include "common/fsutil.h"
#include "host/gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Recorded from torch.cuda with three devices. */
static void a_list_counts_as_in_torch(void **state)
{
    static const struct {
        const char *visible;
        int count;
    } cases[] = {
        {"", 0},
        {"0", 1},
        {"0,1", 2},
        {"1,0", 2},
        {"0,0", 0},
        {"-1", 0},
        {"0,-1,1", 1},
        {"0,,1", 1},
        {"0, 1", 2},
        {"5", 0},
        {"0,5,1", 1},
        {"0,5,5", 0},
        {"1gpu2,2ampere", 2},
        {"+1", 1},
        {"x", 0},
        {"0,x", 1},
        {"GPU-a", 1},
        {"GPU-a,GPU-b", 2},
        {"GPU-a,GPU-a", 0},
        {"GPU-a,1", 1},
        {"GPU-a,GPU-b,GPU-c,GPU-d", 3},
        {"MIG-a,MIG-b", 2},
        {"3,2,1,0", 0},
        {"0,1,2,3,4", 3},
        {"-0", 1},
        {" 0", 1},
        {",0", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (gpus_visible(cases[i].visible, 3) != cases[i].count)
            fail_msg("\"%s\": %d, expected %d", cases[i].visible, gpus_visible(cases[i].visible, 3),
                     cases[i].count);
    assert_int_equal(gpus_visible(NULL, 3), 3);
    assert_int_equal(gpus_visible(NULL, 0), 0);
    assert_int_equal(gpus_visible("0,1", 0), 0);
}

static void device_files_are_counted(void **state)
{
    static const char *const names[] = {"nvidia0",    "nvidia1", "nvidia12", "nvidiactl",
                                        "nvidia-uvm", "nvidia",  "x1"};
    char dir[] = "/tmp/test-gpus-XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(gpus_devices(dir), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct err err = {0};
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        assert_int_equal(fs_write_atomic(path, "", 0, &err), 0);
    }
    assert_int_equal(gpus_devices(dir), 3);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
    assert_int_equal(gpus_devices(dir), 0);
}

static int64_t count_gpus(void *dir)
{
    failing_begin();
    return gpus_devices(dir);
}

/* No memory is not the same as no GPU: ranks would be started on CPUs. */
static void without_memory(void **state)
{
    struct failing_end end;

    (void)state;
    if (failing_skip())
        skip();
    failing_try(1, count_gpus, (char[]){"/dev"}, &end);
    assert_true(end.exhausted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_counts_as_in_torch),
        cmocka_unit_test(device_files_are_counted),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
