/* plugin.h - load a shared object with optional code (such as GPU support) from the program's folder, when it
 * is needed.
 *
 * The file exports one symbol: a table whose first field is its uint32_t interface number.
 * Ownership: a plugin stays loaded until the process ends.
 * Errors:    ERR_NOT_FOUND (this build or image has none), ERR_INVALID (it belongs to another build, or
 *            cannot be loaded here); the message contains the expected path.
 */
#ifndef TK_COMMON_PLUGIN_H
#define TK_COMMON_PLUGIN_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct plugin {
    const char *what;   /* "GPU support", for errors */
    const char *file;   /* "libtk_cuda.so" */
    const char *symbol; /* name of the table */
    uint32_t abi;       /* the expected interface number */
    bool global;        /* load with RTLD_GLOBAL: libraries that it loads need its symbols */
};

/* Load it from `dir`; NULL: from the program's own folder, then ../lib/torchkeeper beside it. Returns the
 * table; NULL on failure. */
const void *plugin_load(const struct plugin *p, const char *dir, struct err *err);

#endif
