/* piece.c - write a file in pieces, and flush each to the disk. */
#include "trainer/state/files/piece.h"

#include "common/fsutil.h"
#include "host/rank_state.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* If the file system or a sandbox does not support it, fsync does the work. Report a failed write here: fsync
 * would not report it again. */
static int sync_range(int fd, off_t from, unsigned flags)
{
    if (from < 0 || !sync_file_range(fd, from, PIECE_BYTES, flags))
        return 0;
    return errno == EINVAL || errno == ENOSYS || errno == ESPIPE || errno == EOPNOTSUPP || errno == EPERM
               ? 0
               : -1;
}

/* Start writing the last complete piece, and wait for the one before. */
static int write_back(int fd, off_t from, off_t to)
{
    const off_t whole = to / PIECE_BYTES * PIECE_BYTES;
    const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

    if (whole <= from)
        return 0;
    return sync_range(fd, whole - PIECE_BYTES, SYNC_FILE_RANGE_WRITE) ||
                   sync_range(fd, whole - 2 * PIECE_BYTES, wait)
               ? -1
               : 0;
}

int piece_write(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len) {
        const size_t n = len < PIECE_BYTES ? len : PIECE_BYTES;
        const off_t at = lseek(fd, 0, SEEK_CUR);
        if (at < 0 || fs_write_all(fd, p, n) || write_back(fd, at, at + (off_t)n))
            return -1;
        rank_state_alive();
        p += n;
        len -= n;
    }
    return 0;
}
