/* fuzz_csv.c - a table that is accepted fills exactly the places that its shape has, with numbers. */
#include "fuzz.h"

#include "trainer/data/csv.h"
#include "trainer/data/layout.h"

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
    char path[64];
    cleanup_close int fd = put(data, size);
    struct csv c;
    struct err err = {0};

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (csv_probe(path, size % 2, &c, &err)) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    int64_t cells = c.rows * (c.columns - 1);
    cleanup_free float *x = malloc((size_t)cells * sizeof(*x));
    cleanup_free int32_t *labels = malloc((size_t)c.rows * sizeof(*labels));
    const struct csv_target to = {.x = x, .labels = labels, .first = c.columns / 2, .width = 1};
    MUST(x && labels);
    if (csv_load(path, size % 2, &c, &to, &err)) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    for (int64_t i = 0; i < cells; i++)
        MUST(isfinite(x[i]));
    for (int64_t i = 0; i < c.rows; i++)
        MUST(labels[i] >= 0 && labels[i] <= LAYOUT_LABEL_MAX);
    return 0;
}
