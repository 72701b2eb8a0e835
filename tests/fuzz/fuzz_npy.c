/* fuzz_npy.c - a header that is accepted promises no more than the file can hold, and the elements are what it says. */
#include "fuzz.h"

#include "trainer/data/layout.h"
#include "trainer/data/npy.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* The readers take a path: the bytes lie in memory that has one. */
static int put(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1 << 16 };
    static float floats[MOST];
    static int32_t labels[MOST];
    char path[64];
    cleanup_close int fd = put(data, size);
    struct npy n;
    struct err err = {0};

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (npy_probe(path, &n, &err)) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    MUST(n.dims >= 1 && n.dims <= NPY_DIMS_MAX && n.count >= 1);
    if (n.count > MOST)
        return 0;
    if (!npy_load(path, &n, NPY_AS_FLOATS, floats, &err))
        for (int64_t i = 0; i < n.count; i++)
            MUST(isfinite(floats[i]));
    if (!npy_load(path, &n, NPY_AS_LABELS, labels, &err))
        for (int64_t i = 0; i < n.count; i++)
            MUST(labels[i] >= 0 && labels[i] <= LAYOUT_LABEL_MAX);
    return 0;
}
