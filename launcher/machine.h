/* machine.h - what the launcher asks of the machine it is on. */
#ifndef TK_LAUNCHER_MACHINE_H
#define TK_LAUNCHER_MACHINE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

/* Device files nvidia0, nvidia1, ... in `dev` ("/dev"). */
int machine_gpus(const char *dev);

/* A free port. While *held, the caller's to close, is open, the kernel gives it to nobody who asks for any port (a
 * connection that goes out, another launcher), and whoever names it listens at it with SO_REUSEADDR, as PyTorch's
 * TCPStore and ours do. */
int machine_hold_port(int *ret, int *held, struct err *err) MUST_CHECK;

/* $PYTHON_EXEC, else python3 or python of $PATH. ERR_NOT_FOUND. */
int machine_python(struct arena *a, const char **ret, struct err *err) MUST_CHECK;

/* 16 random hexadecimal digits. */
const char *machine_random_id(struct arena *a);

/* What a rank wrote into its error file for people: the innermost "message" string of torchrun's JSON. NULL when
 * there is no such file or no such string. */
const char *machine_error_message(const char *path, struct arena *a);

#endif
