/* scratch.c - allocate scratch memory, and check shapes. */
#include "kernels/cpu/run.h"

#include <stdlib.h>

void *scratch_take(struct scratch *s, size_t n, size_t size)
{
    size_t bytes = (n * size + 63) / 64 * 64;
    size_t at = s->used_bytes;
    s->used_bytes += bytes;
    if (s->counting)
        return NULL;
    if (s->used_bytes > s->cap_bytes)
        abort(); /* the caller reserved too little: writing on would corrupt memory */
    return s->base + at;
}

int check_range(const char *op, const char *field, int64_t v, int64_t min, int64_t max, struct err *err)
{
    if (v >= min && v <= max)
        return 0;
    return err_set(err, ERR_INVALID, "%s: %s is %lld, expected %lld..%lld", op, field, (long long)v,
                   (long long)min, (long long)max);
}

int check_elements(const char *op, const char *tensor, const int dims[static 4], struct err *err)
{
    int64_t n = 1;
    for (int i = 0; i < 4; i++) {
        n *= dims[i];
        if (n > INT32_MAX)
            return err_set(err, ERR_INVALID, "%s: %s of %d x %d x %d x %d has more than %d elements", op,
                           tensor, dims[0], dims[1], dims[2], dims[3], INT32_MAX);
    }
    return 0;
}
