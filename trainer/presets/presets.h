/* presets.h - the YAML files of this folder, carried inside the program. */
#ifndef TK_TRAINER_PRESETS_PRESETS_H
#define TK_TRAINER_PRESETS_PRESETS_H

#include <stddef.h>

struct preset {
    const char *name; /* of the file, without .yaml */
    const char *text; /* NUL-terminated; `len` does not count it */
    size_t len;
};

/* In order of names, ended by one without. */
extern const struct preset presets[];

#endif
