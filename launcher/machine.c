/* machine.c - hold a free port, draw random digits. */
#include "launcher/machine.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int machine_hold_port(int *ret, int *held, struct err *err)
{
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(fd, (struct sockaddr *)&addr, len) < 0 || getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_errno(err, ERR_FATAL, errno, "cannot find a free port for MASTER_PORT");
    *ret = ntohs(addr.sin_port);
    *held = TAKE_FD(fd);
    return 0;
}

const char *machine_random_id(struct arena *a)
{
    unsigned long long bits;

    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits)) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        bits = (unsigned long long)ts.tv_sec << 32 ^ (unsigned long long)ts.tv_nsec << 16 ^
               (unsigned long long)getpid();
    }
    return arena_printf(a, "%016llx", bits);
}
