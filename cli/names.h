/* names.h - which texts the API server takes as names of objects, as keys and as labels. Pure. */
#ifndef TK_CLI_NAMES_H
#define TK_CLI_NAMES_H

#include "common/sv.h"

/* Of most objects: DNS labels with dots between them. */
bool names_is_object(struct sv text);

/* Of a value in a ConfigMap or a Secret: it may be the name of a file. */
bool names_is_key(const char *text);

/* NAME or PREFIX/NAME, and its value. */
bool names_is_label(const char *name, const char *value);

#endif
