/* fsutil.c - reading, atomic replacement, directories. */
#include "common/fsutil.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Read the rest of an open file; `path` is for messages, each_piece may be NULL. */
static int read_on(int fd, const char *path, struct buf *out, void (*each_piece)(void), struct err *err)
{
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
        if (each_piece)
            each_piece();
    }
}

static int open_to_read(const char *path, int flags, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

    return fd < 0 ? err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%s", path) : fd;
}

void fs_fill_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_NOCTTY); /* gets the lowest free number */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int fs_read(const char *path, struct buf *out, struct err *err)
{
    cleanup_close int fd = open_to_read(path, 0, err);

    return fd < 0 ? -1 : read_on(fd, path, out, NULL, err);
}

int fs_read_regular(const char *path, struct buf *out, struct err *err)
{
    return fs_read_pieces(path, out, NULL, err);
}

int fs_read_pieces(const char *path, struct buf *out, void (*each_piece)(void), struct err *err)
{
    /* O_NONBLOCK: otherwise opening a FIFO waits for its other end. */
    cleanup_close int fd = open_to_read(path, O_NONBLOCK, err);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s: not a regular file", path);
    return read_on(fd, path, out, each_piece, err);
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

int fs_sync_folder(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -1;
}

/* fsync the folder that holds `path`, so that a rename in it survives a power cut. */
static int sync_parent(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');

    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : fs_sync_folder(fd);
}

int fs_atomic_begin(struct fs_atomic *f, const char *path, struct err *err)
{
    f->fd = -1;
    if (snprintf(f->path, sizeof(f->path), "%s", path) >= (int)sizeof(f->path) ||
        snprintf(f->tmp, sizeof(f->tmp), "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof(f->tmp))
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%s", path);
    /* The name is predictable: a file there was left by a killed writer, or is a link planted by an attacker. */
    (void)unlink(f->tmp);
    f->fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return f->fd < 0 ? err_errno(err, ERR_FATAL, errno, "%s", path) : 0;
}

void fs_atomic_abort(struct fs_atomic *f)
{
    if (f->fd < 0)
        return;
    close(TAKE_FD(f->fd));
    unlink(f->tmp);
}

int fs_atomic_commit(struct fs_atomic *f, struct err *err)
{
    if (fsync(f->fd) < 0 || rename(f->tmp, f->path) < 0) {
        int code = errno;
        fs_atomic_abort(f);
        return err_errno(err, ERR_FATAL, code, "%s", f->path);
    }
    close(TAKE_FD(f->fd));
    if (sync_parent(f->path) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s: folder", f->path);
    return 0;
}

int fs_write_atomic(const char *path, const void *bytes, size_t len, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic f = {.fd = -1};

    if (fs_atomic_begin(&f, path, err) < 0)
        return -1;
    if (fs_write_all(f.fd, bytes, len) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", path);
    return fs_atomic_commit(&f, err);
}

static int make_dirs(const char *path, bool sync, struct err *err)
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
        const bool made = mkdir(part, 0777) == 0;
        if (!made && errno != EEXIST)
            return err_errno(err, ERR_FATAL, errno, "%s", part);
        if (made && sync && sync_parent(part) < 0)
            return err_errno(err, ERR_FATAL, errno, "%s: folder", part);
        part[i] = path[i];
    }
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_errno(err, ERR_FATAL, ENOTDIR, "%s", path);
    return 0;
}

int fs_mkdirs(const char *path, struct err *err)
{
    return make_dirs(path, false, err);
}

int fs_mkdirs_synced(const char *path, struct err *err)
{
    return make_dirs(path, true, err);
}
