/* program.h - tell programs from Python's files, execute one, and say why one cannot be executed. */
#ifndef TK_LAUNCHER_PROGRAM_H
#define TK_LAUNCHER_PROGRAM_H

#include "common/err.h"

#include <stdbool.h>

/* Whether the program at `path` is for Python to run: a folder with __main__.py, or a file that the kernel does not start by
 * itself: no ELF, and not executable or without #!. One with #! that is not executable is Python's when that line names
 * Python. False where nothing lies there. */
bool program_wants_python(const char *path);

/* In a child that has been forked: execute words[0], searched in $PATH and then in the working folder when it has no
 * slash. A script without #! is run by sh, as by execvp; an ELF file that the kernel refuses is not. Returns with errno
 * on failure. Allocates nothing. */
void program_exec(char *const *words, char *const *env);

/* Set *err to why program_exec failed with `code`: ERR_INVALID, code = `code`. Always -1. */
int program_explain(const char *name, int code, struct err *err);

#endif
