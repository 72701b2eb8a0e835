/* machine.h - what the launcher asks of its machine: a free port, random digits. */
#ifndef TK_LAUNCHER_MACHINE_H
#define TK_LAUNCHER_MACHINE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

/* Find a free TCP port and bind a socket, *held, to it, which the caller closes. While it is open, the kernel
 * does not choose the port for others (an outgoing connection, another launcher). A process that asks for this
 * port can still listen at it with SO_REUSEADDR, as PyTorch's TCPStore and this project's collectives do. */
int machine_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

/* 16 random hexadecimal digits. */
const char *machine_random_id(struct arena *a);

#endif
