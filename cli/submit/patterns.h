/* patterns.h - patterns of file names, as in .ptjignore and --include, and which files look like keys. Pure.
 *
 * A text has one pattern on each line, as .gitignore has; `kubectl ptj submit --help` (help/submit.txt) describes the subset.
 */
#ifndef TK_CLI_SUBMIT_PATTERNS_H
#define TK_CLI_SUBMIT_PATTERNS_H

#include "common/buf.h"
#include "common/cleanup.h"

#include <stdbool.h>

/* ERR_INVALID: a line that is no pattern, with `where` and its number. */
int patterns_check(const char *text, const char *where, struct err *err) MUST_CHECK;

/* Whether the last line that fits the path (below the folder, as "a/b.py") has no "!". `flags`: more of fnmatch's. */
bool patterns_fit(const char *text, const char *path, bool folder, int flags);

/* Why a file of this path looks like a key: by its name, or with `bytes` by a private key in it. NULL: it does not. */
const char *patterns_key(const char *path, const struct buf *bytes);

#endif
