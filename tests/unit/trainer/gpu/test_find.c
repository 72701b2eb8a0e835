/* test_find.c - whether the plug-in is loaded at all, and what follows when it cannot be. */
#include "trainer/gpu/find.h"

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *plugins;
static char dev[] = "/tmp/gpu-find-XXXXXX"; /* a /dev with a driver in it */

static int make_dev(void **state)
{
    char path[64];

    (void)state;
    if (!mkdtemp(dev))
        return -1;
    snprintf(path, sizeof(path), "%s/nvidiactl", dev);
    cleanup_close int fd = open(path, O_CREAT | O_WRONLY, 0600);
    return fd < 0;
}

static int remove_dev(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof(path), "%s/nvidiactl", dev);
    return unlink(path) || rmdir(dev);
}

static const char *plugin_dir(const char *kind)
{
    static char dir[512];

    snprintf(dir, sizeof(dir), "%s/%s", plugins, kind);
    return dir;
}

static const struct gpu_ask gloo = {.backend = COLLECTIVES_GLOO, .local_rank = 1, .local_world = 2};
static const struct gpu_ask nccl = {.backend = COLLECTIVES_NCCL, .local_rank = 1, .local_world = 2};

static struct gpu_choice find(const struct gpu_ask *ask, const char *dir, const char *where, bool *loaded)
{
    const struct gpu_plugin *plugin;
    struct gpu_choice got;
    struct err err = {0};

    if (gpu_find(ask, &(struct gpu_where){dir, where}, &plugin, &got, &err))
        fail_msg("%s", err.msg);
    *loaded = plugin != NULL;
    return got;
}

static void refused(const char *dir, const char *part)
{
    const struct gpu_plugin *plugin;
    struct gpu_choice got;
    struct err err = {0};

    assert_int_equal(gpu_find(&nccl, &(struct gpu_where){dir, dev}, &plugin, &got, &err), -1);
    assert_null(plugin);
    assert_int_equal(got.device, GPU_NONE);
    if (!strstr(err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
}

static void test_gpu_is_found(void **state)
{
    bool loaded;

    (void)state;
    setenv("FAKE_GPUS", "2", 1);
    assert_int_equal(find(&gloo, plugin_dir("some_gpus"), dev, &loaded).device, 1);
    assert_true(loaded);
    assert_int_equal(find(&nccl, plugin_dir("some_gpus"), dev, &loaded).device, 1);
    assert_true(loaded);
    setenv("FAKE_GPUS", "1", 1);
    refused(plugin_dir("some_gpus"), "2 ranks here and 1 GPU visible");
}

/* On a machine without a driver the plug-in is not even opened: a damaged one would be told. */
static void test_no_driver_costs_nothing(void **state)
{
    bool loaded;

    (void)state;
    assert_string_equal(find(&gloo, plugin_dir("no_symbol"), "/nonexistent", &loaded).note, "");
    assert_false(loaded);
    struct gpu_ask forbidden = gloo;
    forbidden.no_cuda = true;
    assert_string_equal(find(&forbidden, plugin_dir("no_symbol"), dev, &loaded).note, "");
}

static void test_gloo_trains_on(void **state)
{
    bool loaded;

    (void)state;
    setenv("FAKE_GPUS", "broken", 1);
    assert_non_null(strstr(find(&gloo, plugin_dir("some_gpus"), dev, &loaded).note, "runtime: broken"));
    assert_false(loaded);
    assert_non_null(strstr(find(&gloo, plugin_dir("other_abi"), dev, &loaded).note, "another build"));
    assert_non_null(strstr(find(&gloo, "/nonexistent", dev, &loaded).note, "training on the CPU: "));
    setenv("FAKE_GPUS", "0", 1);
    struct gpu_choice got = find(&gloo, plugin_dir("some_gpus"), dev, &loaded);
    assert_true(got.device == GPU_NONE && !loaded);
}

/* Another image helps only where this one has no GPU support. */
static void test_nccl_says_what_helps(void **state)
{
    (void)state;
    setenv("FAKE_GPUS", "broken", 1);
    refused("/nonexistent", ": use an image with it (trainer-cuda), or --backend gloo");
    refused(plugin_dir("some_gpus"), "broken: look at the node's driver and runtime, or use --backend gloo");
    refused(plugin_dir("no_symbol"), ": look at the node's driver and runtime, or use --backend gloo");
}

static void test_nccl_does_not(void **state)
{
    (void)state;
    setenv("FAKE_GPUS", "broken", 1);
    refused(plugin_dir("some_gpus"), "--backend nccl: CUDA's runtime: broken");
    refused("/nonexistent", "--backend nccl: /nonexistent/libtk_cuda.so: no GPU support there");
    refused(plugin_dir("other_abi"), "another build");
    setenv("FAKE_GPUS", "0", 1);
    refused(plugin_dir("some_gpus"), "no GPU is visible");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_is_found),         cmocka_unit_test(test_no_driver_costs_nothing),
        cmocka_unit_test(test_gloo_trains_on),       cmocka_unit_test(test_nccl_does_not),
        cmocka_unit_test(test_nccl_says_what_helps),
    };

    plugins = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, make_dev, remove_dev);
}
