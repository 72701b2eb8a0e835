/* code.h - the user's script or folder, read to become a ConfigMap. For the verb submit.
 *
 * Ownership: everything lives in the arena.
 * Errors:    ERR_INVALID: too much for a ConfigMap, no regular file, or one that looks like a key. Errors of reading.
 */
#ifndef TK_CLI_SUBMIT_CODE_H
#define TK_CLI_SUBMIT_CODE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>

enum {
    CODE_BYTES_MAX = 1 << 20, /* of all files: what a ConfigMap may hold */
    CODE_FILES_MAX = 256,
    CODE_DEPTH_MAX = 16,
    CODE_PATH_BYTES = 512,
};

struct code_file {
    const char *path;    /* below the folder, "a/b.py"; of a script its base name */
    const char *content; /* text, or base64 of what is no text */
    size_t bytes;
    bool binary;
};

/* A name that is left out, and why: it begins with a dot, or is no regular file (a link is none). */
struct code_skipped {
    const char *path, *why;
};

struct code {
    bool folder;
    struct code_file *files; /* sorted by path */
    int n;
    struct code_skipped *skipped;
    int n_skipped; /* those beyond CODE_FILES_MAX are only counted */
    int n_ignored; /* files and folders that .ptjignore names */
};

/* A file, or the regular files of a folder without __pycache__, what .ptjignore in the folder names, and `skipped`. `include`: patterns (patterns.h) of files that are taken though they look like keys. */
int code_read(const char *path, const char *include, struct arena *a, struct code *ret,
              struct err *err) MUST_CHECK;

#endif
