/* device.c - the functions of device.h that need no GPU: close, and flags as numbers. */
#include "collectives/device.h"

void device_comm_close(struct device_comm *c)
{
    if (c)
        c->close(c);
}

void device_flags_put(uint32_t flags, float put[DEVICE_FLAGS])
{
    for (int i = 0; i < DEVICE_FLAGS; i++)
        put[i] = (float)(flags >> i & 1u);
}

uint32_t device_flags_get(const float sums[DEVICE_FLAGS])
{
    uint32_t flags = 0;

    for (int i = 0; i < DEVICE_FLAGS; i++)
        flags |= (uint32_t)(sums[i] > 0) << i;
    return flags;
}
