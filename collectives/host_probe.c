/* host_probe.c - test whether this process can share memory with others: some sandboxes forbid memfd or UNIX
 * sockets, and processes in different network namespaces do not see each other's abstract socket names. */
#include "collectives/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Whether an errno means that the system call is never allowed here. Other failures are reported by the real
 * attempt. */
static bool is_forbidden(int code)
{
    static const int codes[] = {EPERM, EACCES, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT, EPROTONOSUPPORT, EINVAL};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (code == codes[i])
            return true;
    return false;
}

/* Bind without a path: the kernel chooses an abstract name. */
static int try_name(void)
{
    const struct sockaddr_un addr = {.sun_family = AF_UNIX};
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 || bind(fd, (const struct sockaddr *)&addr, offsetof(struct sockaddr_un, sun_path)) < 0
               ? errno
               : 0;
}

static int try_memory(void)
{
    cleanup_close int fd = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    return fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0 ? errno : 0;
}

bool host_can_share(void)
{
    return !is_forbidden(try_name()) && !is_forbidden(try_memory());
}

uint64_t host_network(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}
