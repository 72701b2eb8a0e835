/* machine.h - the launcher's queries of its machine: hold a free port, find Python. */
#ifndef TK_LAUNCHER_MACHINE_H
#define TK_LAUNCHER_MACHINE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/jobkey.h"
#include "host/memory_file.h"

#include <stdbool.h>

/* Find a free TCP port and bind a socket, *held, to it, which the caller closes. While it is open, the kernel
 * does not choose the port for others (an outgoing connection, another launcher). A process that asks for this
 * port can still listen at it with SO_REUSEADDR, as PyTorch's TCPStore and this project's collectives do. */
int machine_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

/* A memory file with the key of the job, for ranks that find it by CONTRACT_ENV_KEY_FILE, and the value of that; the caller closes
 * it. Without a key, or where there are no such files, -1. */
int machine_keep_key(const struct jobkey *key, char where[static MEMORY_FILE_BYTES]);

/* $PYTHON_EXEC, else python3 or python if in $PATH. ERR_NOT_FOUND. *ret may be in the arena. */
int machine_python(struct arena *a, const char **ret, struct err *err) MUST_CHECK;

/* 16 random hexadecimal digits. */
const char *machine_random_id(struct arena *a);

#endif
