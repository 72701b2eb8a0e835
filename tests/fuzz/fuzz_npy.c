/* fuzz_npy.c - a header that is accepted promises no more than the file can hold, and the elements are what it says. */
#include "fuzz_file.h"

#include "trainer/data/layout.h"
#include "trainer/data/npy.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 16 };
    static float floats[MOST];
    static int32_t labels[MOST];
    cleanup_fuzz_file struct fuzz_file f = fuzz_file_make(data, size);
    struct npy n;
    struct err err = {0};

    if (npy_probe(f.path, &n, &err)) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    MUST(n.dims >= 1 && n.dims <= NPY_DIMS_MAX && n.count >= 1);
    if (n.count > MOST)
        return 0;
    if (!npy_load(f.path, &n, NPY_AS_FLOATS, floats, &err))
        for (int64_t i = 0; i < n.count; i++)
            MUST(isfinite(floats[i]));
    if (!npy_load(f.path, &n, NPY_AS_LABELS, labels, &err))
        for (int64_t i = 0; i < n.count; i++)
            MUST(labels[i] >= 0 && labels[i] <= LAYOUT_LABEL_MAX);
    return 0;
}
