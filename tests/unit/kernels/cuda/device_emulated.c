/* device_emulated.c - the GPU's code on an emulated GPU (tests/fakes/cuda). */
#include "beside.h"
#include "kernels/cuda/cuda.h"

void emulate_order(bool descending);
void emulate_grid_y(unsigned most);

struct kctx *device_open(enum precision precision, enum element element, struct err *err)
{
    return cuda_make(0, precision, element, err);
}

void device_disturb(bool on)
{
    emulate_order(on);
}

void device_grid_y(unsigned most)
{
    emulate_grid_y(most);
}
