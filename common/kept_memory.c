/* kept_memory.c - make a launcher's memory file. */
#include "common/kept_memory.h"

#include "common/contract.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int kept_memory_make(char where[static KEPT_MEMORY_BYTES])
{
    cleanup_close int fd = memfd_create(CONTRACT_KEPT_DATA_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL))
        return -1;
    snprintf(where, KEPT_MEMORY_BYTES, "%d/%d", (int)getpid(), fd);
    return TAKE_FD(fd);
}
