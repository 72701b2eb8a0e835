/* facts.c - devices and versions. */
#include "trainer/cuda/facts.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

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
        (void)cudaGetLastError(); /* else the next call reports it again */
    }
    *ret = f;
    return 0;
}
