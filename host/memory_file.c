/* memory_file.c - create a launcher's memory file, and open it in a rank. */
#include "host/memory_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int memory_file_make(const char *name, size_t bytes, char where[static MEMORY_FILE_BYTES])
{
    cleanup_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || (bytes && ftruncate(fd, (off_t)bytes)) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL | (bytes ? F_SEAL_GROW : 0)))
        return -1;
    snprintf(where, MEMORY_FILE_BYTES, "%d/%d", (int)getpid(), fd);
    return TAKE_FD(fd);
}

static bool has_name(const char *path, const char *name)
{
    char want[128], target[128];
    const int len = snprintf(want, sizeof(want), "/memfd:%s (deleted)", name);

    return readlink(path, target, sizeof(target)) == len && memcmp(target, want, (size_t)len) == 0;
}

int memory_file_open(const char *name, struct sv where)
{
    struct sv part;
    struct stat st;
    int64_t pid, number;
    char path[64];

    if (!sv_next(&where, '/', &part) || !sv_i64(part, 1, INT_MAX, &pid) ||
        !sv_i64(where, 0, INT_MAX, &number))
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, (int)number);
    if (!has_name(path, name))
        return -1;
    cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    const int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || (seals & F_SEAL_WRITE) || fstat(fd, &st) ||
        !S_ISREG(st.st_mode))
        return -1;
    return TAKE_FD(fd);
}
