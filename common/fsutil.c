/* fsutil.c - reading, atomic replacement, directories. */
#include "common/fsutil.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int fs_read(const char *path, struct buf *out, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%s", path);
    for (;;) {
        char chunk[16384];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_FATAL, errno, "%s", path);
        if (n == 0)
            return 0;
        if (buf_append(out, chunk, (size_t)n, err) < 0)
            return err_wrap(err, "%s", path);
    }
}

int fs_write_all(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* fsync the folder that holds `path`, so that a rename in it survives a power cut. */
static int sync_parent(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');

    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fsync(fd);
}

static int write_temporary(const char *tmp, const void *bytes, size_t len)
{
    cleanup_close int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0 || fs_write_all(fd, bytes, len) < 0)
        return -1;
    return fsync(fd);
}

int fs_write_atomic(const char *path, const void *bytes, size_t len, struct err *err)
{
    char tmp[PATH_MAX];

    if (snprintf(tmp, sizeof(tmp), "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof(tmp))
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%s", path);
    if (write_temporary(tmp, bytes, len) < 0 || rename(tmp, path) < 0) {
        int code = errno;
        unlink(tmp);
        return err_errno(err, ERR_FATAL, code, "%s", path);
    }
    if (sync_parent(path) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s: folder", path);
    return 0;
}

int fs_mkdirs(const char *path, struct err *err)
{
    char part[PATH_MAX];
    size_t len = strlen(path);

    if (!len || len >= sizeof(part))
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%s", path);
    memcpy(part, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return err_errno(err, ERR_FATAL, errno, "%s", part);
        part[i] = path[i];
    }
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_errno(err, ERR_FATAL, ENOTDIR, "%s", path);
    return 0;
}
