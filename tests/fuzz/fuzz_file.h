/* fuzz_file.h - for readers that take a path: the input lies in memory that has one; and a folder, in memory too where the
 * machine has such. */
#ifndef TK_TESTS_FUZZ_FUZZ_FILE_H
#define TK_TESTS_FUZZ_FUZZ_FILE_H

#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

struct fuzz_file {
    int fd;
    char path[64];
};

static inline struct fuzz_file fuzz_file_make(const uint8_t *data, size_t size)
{
    struct fuzz_file f = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};

    MUST(f.fd >= 0 && write(f.fd, data, size) == (ssize_t)size);
    snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
    return f;
}

static inline void fuzz_file_close(struct fuzz_file *f)
{
    close(f->fd);
}
#define cleanup_fuzz_file __attribute__((cleanup(fuzz_file_close)))

enum { FUZZ_FOLDER_BYTES = 32 };

static inline void fuzz_folder_make(char path[static FUZZ_FOLDER_BYTES])
{
    snprintf(path, FUZZ_FOLDER_BYTES, "/dev/shm/fuzz.XXXXXX");
    if (mkdtemp(path))
        return;
    snprintf(path, FUZZ_FOLDER_BYTES, "/tmp/fuzz.XXXXXX");
    MUST(mkdtemp(path));
}

#endif
