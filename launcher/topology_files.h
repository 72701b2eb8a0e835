/* topology_files.h - small files below a root. Internal to topology*.c. */
#ifndef TK_LAUNCHER_TOPOLOGY_FILES_H
#define TK_LAUNCHER_TOPOLOGY_FILES_H

#include "common/buf.h"
#include "launcher/topology.h"

enum { TOPOLOGY_PATH_BYTES = 512, TOPOLOGY_FILE_BYTES = 64 * 1024 };

/* Replace *out by the file's text. */
int topology_read(const char *root, struct buf *out, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), warn_unused_result));

/* The file's number, at least `min`. */
int topology_number(const char *root, const char *path, int min, int *ret, struct err *err) MUST_CHECK;

#endif
