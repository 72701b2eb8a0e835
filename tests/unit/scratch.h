/* scratch.h - a folder for a test that writes checkpoints: in memory, where an fsync costs nothing, if there is room. */
#ifndef TK_TESTS_UNIT_SCRATCH_H
#define TK_TESTS_UNIT_SCRATCH_H

#include <stdint.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { SCRATCH_MIB = 512 };

static inline const char *scratch_home(void)
{
    struct statvfs room;

    if (access("/dev/shm", W_OK) < 0 || statvfs("/dev/shm", &room) < 0 ||
        (uint64_t)room.f_bavail * room.f_frsize < (uint64_t)SCRATCH_MIB << 20)
        return "/tmp";
    return "/dev/shm";
}

#endif
