/* facts.c - query CUDA's runtime for this machine's GPUs and the versions of driver and runtime. */
#include "trainer/gpu/facts.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

static cudaError_t read_capability(int device, int *ret)
{
    int major, minor;
    cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);

    if (!e)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (!e)
        *ret = 10 * major + minor;
    return e;
}

int facts_read(struct gpu_facts *ret, struct err *err)
{
    struct gpu_facts f = {0};
    cudaError_t e;

    if ((e = cudaRuntimeGetVersion(&f.runtime)) || (e = cudaDriverGetVersion(&f.driver)))
        return err_set(err, ERR_FATAL, "CUDA's runtime: %s", cudaGetErrorString(e));
    e = cudaGetDeviceCount(&f.devices);
    if (e) {
        f.devices = 0;
        snprintf(f.why_none, sizeof(f.why_none), "%s", cudaGetErrorString(e));
        (void)cudaGetLastError(); /* clear the error, else the next call reports it again */
    }
    for (int d = 0; d < f.devices && d < GPU_DEVICES_MAX; d++)
        if ((e = read_capability(d, &f.capability[d])))
            return err_set(err, ERR_FATAL, "GPU %d: %s", d, cudaGetErrorString(e));
    *ret = f;
    return 0;
}
