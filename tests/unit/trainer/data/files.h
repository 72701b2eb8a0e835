/* files.h - small files for the tests of this folder: in a folder of their own, plain or gzip-compressed. */
#ifndef TK_TESTS_TRAINER_DATA_FILES_H
#define TK_TESTS_TRAINER_DATA_FILES_H

#include "common/cleanup.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

/* A new folder's path; the caller removes it with files_remove. */
static inline void files_folder(char out[static PATH_MAX])
{
    const char *base = getenv("TMPDIR");

    snprintf(out, PATH_MAX, "%s/test_data.XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(out))
        abort();
}

static inline void files_remove(const char *folder)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (system(command) != 0)
        abort();
}

static inline void files_write(const char *path, const void *bytes, size_t len)
{
    cleanup_fclose FILE *f = fopen(path, "wb");

    if (!f || (len && fwrite(bytes, 1, len, f) != len))
        abort();
}

/* A folder for a test, and a name in it. */
struct files_fixture {
    char folder[PATH_MAX];
    char path[PATH_MAX + 16];
};

static inline int files_setup(void **state, const char *name)
{
    struct files_fixture *f = calloc(1, sizeof(*f));

    if (!f)
        abort();
    files_folder(f->folder);
    snprintf(f->path, sizeof(f->path), "%s/%s", f->folder, name);
    *state = f;
    return 0;
}

static inline int files_teardown(void **state)
{
    struct files_fixture *f = *state;

    files_remove(f->folder);
    free(f);
    return 0;
}

/* Compress into `out`; returns the length. */
static inline size_t files_gzip(const void *bytes, size_t len, uint8_t *out, size_t max)
{
    z_stream z = {0};

    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = (z_const Bytef *)bytes;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)max;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&z);
    return max - z.avail_out;
}

static inline void files_big_endian(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)(v >> 24);
    at[1] = (uint8_t)(v >> 16);
    at[2] = (uint8_t)(v >> 8);
    at[3] = (uint8_t)v;
}

#endif
