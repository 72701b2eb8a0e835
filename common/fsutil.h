/* fsutil.h - read a whole file, replace one atomically, make folders.
 *
 * Errors:    ERR_NOT_FOUND (no such file), ERR_INVALID (larger than the limit), ERR_FATAL (anything else;
 *            code = errno).
 */
#ifndef TK_COMMON_FSUTIL_H
#define TK_COMMON_FSUTIL_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <limits.h>

/* Open /dev/null for each of stdin, stdout and stderr that is closed: otherwise the next file opened would
 * get that number. Call it first in main. */
void fs_fill_standard(void);

/* Append the file's bytes to *out, at most to out->max. */
int fs_read(const char *path, struct buf *out, struct err *err) MUST_CHECK;

/* The same for a path that others can replace: a FIFO or a device is ERR_INVALID, without waiting for it. */
int fs_read_regular(const char *path, struct buf *out, struct err *err) MUST_CHECK;

/* The same for a file that takes long to read: each_piece is called after every 16 KiB. */
int fs_read_pieces(const char *path, struct buf *out, void (*each_piece)(void), struct err *err) MUST_CHECK;

/* Replace `path` so that after a crash it is the old file or the new one, never a part: a temporary file in
 * the same folder, fsync, rename, fsync of the folder. Mode 0644 less the umask. */
int fs_write_atomic(const char *path, const void *bytes, size_t len, struct err *err) MUST_CHECK;

/* The same for a file that is written in pieces: begin, write to `fd`, then commit or abort. When commit
 * fails before the rename, the old file stays and the temporary one is removed. fd -1: not begun; abort then
 * does nothing. */
struct fs_atomic {
    int fd;
    char path[PATH_MAX];
    char tmp[PATH_MAX];
};

int fs_atomic_begin(struct fs_atomic *f, const char *path, struct err *err) MUST_CHECK;
int fs_atomic_commit(struct fs_atomic *f, struct err *err) MUST_CHECK;
void fs_atomic_abort(struct fs_atomic *f);

#define cleanup_fs_atomic __attribute__((cleanup(fs_atomic_abort)))

/* mkdir -p, mode 0777 less the umask. */
int fs_mkdirs(const char *path, struct err *err) MUST_CHECK;

/* The same, with an fsync of each parent, so that new folders survive a power cut. */
int fs_mkdirs_synced(const char *path, struct err *err) MUST_CHECK;

/* fsync a folder, as far as its file system can: SMB before Linux 5.8 and VirtualBox's shared folders cannot.
 * Returns -1 with errno set. */
int fs_sync_folder(int fd);

/* Call write(2) until all bytes are written. Returns -1 with errno set. */
int fs_write_all(int fd, const void *bytes, size_t len);

#endif
