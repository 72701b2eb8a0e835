/* blas.c - load cuBLASLt with dlopen and look up the functions that matmul.c uses. */
#include "kernels/cuda/blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int blas_load(struct blas *b, struct err *err)
{
    char file[40];
    void *p;

    snprintf(file, sizeof(file), "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_set(
            err, ERR_INVALID,
            "cuBLAS: %.120s: expected NVIDIA's cuBLAS %d (pip: nvidia-cublas) where the loader finds it "
            "(LD_LIBRARY_PATH); TK_CUBLAS=off computes without it, slowly",
            dlerror(), CUBLAS_VER_MAJOR);
#define BLAS_LOAD(name)                                                                                      \
    if (!(p = dlsym(handle, "cublasLt" #name)))                                                              \
        return err_set(err, ERR_INVALID, "cuBLAS: %.120s: expected version %d.%d or newer", dlerror(),       \
                       CUBLAS_VER_MAJOR, 0);                                                                 \
    memcpy(&b->name, &p, sizeof(p));
    BLAS_FUNCTIONS(BLAS_LOAD)
#undef BLAS_LOAD
    return 0;
}
