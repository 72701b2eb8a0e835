/* presets.h - the YAML files of this folder, embedded in the program. trainer/cli reads them. */
#ifndef TK_TRAINER_PRESETS_PRESETS_H
#define TK_TRAINER_PRESETS_PRESETS_H

#include <stddef.h>

struct preset {
    const char *name; /* the file's, without .yaml */
    const char *text; /* NUL-terminated; `len` does not count it */
    size_t len;
};

/* Sorted by name; the last one has name NULL. */
extern const struct preset presets[];

#endif
