/* install.h - torchrun --install-to FILE: the program copies itself, for an image that has no shell and no cp.
 *
 * Errors:    as fsutil.h's, naming the file; an existing FILE then stays as it was, and nothing is left beside it.
 */
#ifndef TK_LAUNCHER_INSTALL_H
#define TK_LAUNCHER_INSTALL_H

#include "common/cleanup.h"
#include "common/err.h"

/* Copy `program` to `path`, mode 0555 whatever the umask: a temporary file beside it, then a rename. An existing
 * file is replaced. */
int install_program(const char *program, const char *path, struct err *err) MUST_CHECK;

#endif
