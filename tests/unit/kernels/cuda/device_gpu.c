/* device_gpu.c - the first GPU of this machine. */
#include "beside.h"
#include "kernels/cuda/cuda.h"

struct kctx *device_open(enum precision precision, enum element element, struct err *err)
{
    return cuda_make(0, precision, element, err);
}

/* A GPU takes blocks in whatever order it likes. */
void device_disturb(bool on)
{
    (void)on;
}

/* It takes what it takes. */
void device_grid_y(unsigned most)
{
    (void)most;
}
