/* program.h - tell programs from Python's files; find Python; execute a program; explain why a program cannot be
 * executed; copy the launcher's executable. */
#ifndef TK_LAUNCHER_PROGRAM_H
#define TK_LAUNCHER_PROGRAM_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>

/* Whether the program at `path` is for Python to run: a folder with __main__.py, or a file that the kernel does not start by
 * itself: no ELF, and not executable or without #!. One with #! that is not executable is Python's when that line names
 * Python. False where nothing lies there. */
bool program_wants_python(const char *path);

/* $PYTHON_EXEC, else python3 or python if in $PATH. ERR_NOT_FOUND. */
int program_python(const char **ret, struct err *err) MUST_CHECK;

/* In a child that has been forked: execute words[0], searched in $PATH and then in the working folder when it has no
 * slash. A script without #! is run by sh, as by execvp; an ELF file that the kernel refuses is not. Returns with errno
 * on failure. Allocates nothing. */
void program_exec(char *const *words, char *const *env);

/* Set *err to why program_exec failed with `code`: ERR_INVALID, code = `code`. Always -1. */
int program_explain(const char *name, int code, struct err *err);

/* torchrun --install-to: copy the file `program` to `path`, mode 0555 whatever the umask: a temporary file beside it, then a
 * rename. Errors as fsutil.h's, naming the file; an existing one then stays as it was, and nothing is left beside it. */
int program_install(const char *program, const char *path, struct err *err) MUST_CHECK;

#endif
