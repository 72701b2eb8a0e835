/* program.h - decide whether a file needs Python; find Python; execute a program, and explain a failure; copy
 * the launcher's executable. options.c, process.c and main.c call it. */
#ifndef TK_LAUNCHER_PROGRAM_H
#define TK_LAUNCHER_PROGRAM_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>

/* Whether Python has to run the program at `path`: a folder with __main__.py, or a file that is not ELF and
 * has no #!, or has a #! line that names Python but is not executable. False if there is no such file. */
bool program_wants_python(const char *path);

/* $PYTHON_EXEC, else python3 or python if in $PATH. ERR_NOT_FOUND. */
int program_python(const char **ret, struct err *err) MUST_CHECK;

/* In a child that has been forked: execute words[0], searched in $PATH and then in the working folder when it has no
 * slash. A script without #! is run by sh, as by execvp; an ELF file that the kernel refuses is not. Returns with errno
 * on failure. Allocates nothing. */
void program_exec(char *const *words, char *const *env);

/* Set *err to why program_exec failed with `code`: ERR_INVALID with code = `code`. Always -1. */
int program_explain(const char *name, int code, struct err *err);

/* torchrun --install-to: copy the file `program` to `path`, mode 0555 whatever the umask, by a temporary file
 * and a rename. Errors as in fsutil.h; an existing file is then unchanged, and no temporary file remains. */
int program_install(const char *program, const char *path, struct err *err) MUST_CHECK;

#endif
