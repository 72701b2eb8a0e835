/* test_facts.c - what CUDA's runtime answers, played by this file, becomes facts or one clear line. */
#include "trainer/gpu/facts.h"

#include "test.h"

#include <cuda_runtime_api.h>
#include <string.h>

static struct {
    int driver, devices;
    cudaError_t versions, count, attributes;
    int last_error_reads;
} played;

cudaError_t cudaRuntimeGetVersion(int *ret)
{
    *ret = 13050;
    return played.versions;
}

cudaError_t cudaDriverGetVersion(int *ret)
{
    *ret = played.driver;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = played.count ? -7 : played.devices; /* unspecified on failure */
    return played.count;
}

cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr attribute, int device)
{
    assert_true(device >= 0 && device < played.devices);
    *ret = attribute == cudaDevAttrComputeCapabilityMajor ? 8 + device % 2 : 6;
    return played.attributes;
}

cudaError_t cudaGetLastError(void)
{
    played.last_error_reads++;
    return played.count;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "another error";
}

static void test_devices(void **state)
{
    struct gpu_facts f;
    struct err err;

    (void)state;
    memset(&played, 0, sizeof(played));
    played.driver = 13020;
    played.devices = 2;
    assert_int_equal(facts_read(&f, &err), 0);
    assert_int_equal(f.devices, 2);
    assert_int_equal(f.driver, 13020);
    assert_int_equal(f.runtime, 13050);
    assert_int_equal(f.capability[0], 86);
    assert_int_equal(f.capability[1], 96);
    assert_string_equal(f.why_none, "");
}

static void test_none_is_a_fact(void **state)
{
    struct gpu_facts f;
    struct err err;

    (void)state;
    memset(&played, 0, sizeof(played));
    played.count = cudaErrorNoDevice;
    assert_int_equal(facts_read(&f, &err), 0);
    assert_int_equal(f.devices, 0);
    assert_string_equal(f.why_none, "no CUDA-capable device is detected");
    assert_int_equal(played.last_error_reads, 1); /* else the next call would report it */
}

static void test_more_than_are_kept(void **state)
{
    struct gpu_facts f;
    struct err err;

    (void)state;
    memset(&played, 0, sizeof(played));
    played.devices = GPU_DEVICES_MAX + 5;
    assert_int_equal(facts_read(&f, &err), 0);
    assert_int_equal(f.devices, GPU_DEVICES_MAX + 5);
    assert_int_equal(f.capability[GPU_DEVICES_MAX - 1], 96);
}

static void test_broken_runtime(void **state)
{
    struct gpu_facts f = {.devices = 77};
    struct err err = {0};

    (void)state;
    memset(&played, 0, sizeof(played));
    played.versions = cudaErrorInitializationError;
    assert_int_equal(facts_read(&f, &err), -1);
    assert_string_equal(err.msg, "CUDA's runtime: another error");
    played.versions = cudaSuccess;
    played.devices = 1;
    played.attributes = cudaErrorInvalidValue;
    assert_int_equal(facts_read(&f, &err), -1);
    assert_string_equal(err.msg, "GPU 0: another error");
    assert_int_equal(f.devices, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_none_is_a_fact),
        cmocka_unit_test(test_more_than_are_kept),
        cmocka_unit_test(test_broken_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
