/* manifest.h - a checkpoint's manifest.json: run, step, configuration, and the size and CRC of each file.
 * ckpt_dir.c calls it. Pure.
 *
 * Ownership: plain structs.
 * Errors:    ERR_INVALID names the field and what was expected. ERR_CONFLICT: it has another format; *ret
 *            then has only `format` and `run_id`. */
#ifndef TK_TRAINER_STATE_FILES_MANIFEST_H
#define TK_TRAINER_STATE_FILES_MANIFEST_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdint.h>

enum {
    MANIFEST_FORMAT = 2,
    MANIFEST_BYTES = 1 << 14,
    MANIFEST_FILES_MAX = 8,
    MANIFEST_NAME_BYTES = 32,
    MANIFEST_RUN_ID_BYTES = 256,
};

struct manifest_file {
    char name[MANIFEST_NAME_BYTES]; /* letters, digits, '_', '-' and inner dots: never a path */
    int64_t bytes;
    uint32_t crc; /* CRC-32 of zlib and zip */
};

struct manifest {
    int64_t format;                     /* when writing, 0 means MANIFEST_FORMAT */
    int64_t step;                       /* of the run */
    uint32_t config;                    /* hash of the configuration */
    int64_t saved_ms;                   /* Unix time; 0: not known */
    char run_id[MANIFEST_RUN_ID_BYTES]; /* see run_id.h */
    uint32_t launch;                    /* see run_id.h; 0: not known */
    int files;
    struct manifest_file file[MANIFEST_FILES_MAX];
};

int manifest_encode(const struct manifest *m, struct buf *out, struct err *err) MUST_CHECK;
int manifest_decode(const char *text, size_t len, struct manifest *ret, struct err *err) MUST_CHECK;

/* The file of that name, or NULL. */
const struct manifest_file *manifest_find(const struct manifest *m, const char *name);

#endif
