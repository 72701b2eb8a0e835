/* machine.h - the launcher's queries of its machine: hold a free port and memory, find Python. */
#ifndef TK_LAUNCHER_MACHINE_H
#define TK_LAUNCHER_MACHINE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/jobkey.h"

#include <stdbool.h>

struct rank_slot;

/* Find a free TCP port and bind a socket, *held, to it, which the caller closes. While it is open, the kernel
 * does not choose the port for others (an outgoing connection, another launcher). A process that asks for this
 * port can still listen at it with SO_REUSEADDR, as PyTorch's TCPStore and this project's collectives do. */
int machine_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

/* An empty memory file for what ranks keep over restarts (memory_file.h), and the value of CONTRACT_ENV_KEPT_DATA; the caller
 * closes it. -1: not here, and none is needed. */
int machine_keep_data(const char **ret, struct arena *a);

/* The key of the job, for ranks that read it from CONTRACT_ENV_KEY_FILE: as machine_keep_data. Without a key -1. */
int machine_keep_key(const struct jobkey *key, const char **ret, struct arena *a);

/* The file of what the n ranks do (rank_state.h), its slots, and the start of the value of CONTRACT_ENV_RANK_STATE; the caller
 * unmaps and closes it. -1: not here, and none is needed; *slots is NULL. */
int machine_rank_state(int n, struct rank_slot **slots, const char **ret, struct arena *a);

/* $PYTHON_EXEC, else python3 or python if in $PATH. ERR_NOT_FOUND. *ret may be in the arena. */
int machine_python(struct arena *a, const char **ret, struct err *err) MUST_CHECK;

/* 16 random hexadecimal digits. */
const char *machine_random_id(struct arena *a);

#endif
