/* plugin.h - shared objects that carry what only some need, and its libraries: found beside the program, opened when asked
 * for. Such a file exports one symbol, a table whose first field is its uint32_t interface number.
 *
 * Ownership: what is loaded stays loaded.
 * Errors:    ERR_NOT_FOUND (this build or image has none), ERR_INVALID (it belongs to another build, or cannot be
 *            loaded here); the message says where it was expected.
 */
#ifndef TK_COMMON_PLUGIN_H
#define TK_COMMON_PLUGIN_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

struct plugin {
    const char *what;   /* "GPU support", for errors */
    const char *file;   /* "libtk_cuda.so" */
    const char *symbol; /* of the table */
    uint32_t abi;       /* the number expected */
    bool global;        /* its libraries open others that look for their symbols */
};

/* `dir`: where to look; NULL: the program's own folder, then ../lib/torchkeeper beside it. The table; NULL on failure. */
const void *plugin_load(const struct plugin *p, const char *dir, struct err *err);

#endif
