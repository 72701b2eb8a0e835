/* install.c - copy the program to a file that anybody may run and nobody may write. */
#include "launcher/install.h"
#include "common/fsutil.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 64 << 10 };

static int copy(int from, int to)
{
    char bytes[COPY_BYTES];

    for (;;) {
        ssize_t n = read(from, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        if (fs_write_all(to, bytes, (size_t)n) < 0)
            return -1;
    }
}

int install_program(const char *program, const char *path, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic f = {.fd = -1};
    cleanup_close int from = open(program, O_RDONLY | O_CLOEXEC);

    if (from < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", program);
    if (fs_atomic_begin(&f, path, err) < 0)
        return -1;
    if (copy(from, f.fd) < 0 || fchmod(f.fd, 0555) < 0)
        return err_errno(err, ERR_FATAL, errno, "%s", path);
    return fs_atomic_commit(&f, err);
}
