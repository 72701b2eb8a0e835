/* device.c - the function of device.h that needs no GPU. */
#include "collectives/device.h"

void device_comm_close(struct device_comm *c)
{
    if (c)
        c->close(c);
}
