/* machine.c - hold a free port, find Python. */
#include "launcher/machine.h"
#include "host/rank_contract.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
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

int machine_keep_key(const struct jobkey *key, char where[static MEMORY_FILE_BYTES])
{
    const int fd = key->has ? memory_file_make(CONTRACT_KEY_FILE_NAME, sizeof(key->bytes), where) : -1;

    if (fd >= 0 && pwrite(fd, key->bytes, sizeof(key->bytes), 0) != (ssize_t)sizeof(key->bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool in_path(const char *name, struct arena *a)
{
    const char *path = getenv("PATH");

    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
        size_t n = strcspn(path, ":");
        if (access(arena_printf(a, "%.*s/%s", (int)n, path, name), X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

int machine_python(struct arena *a, const char **ret, struct err *err)
{
    static const char *const names[] = {"python3", "python"};
    const char *given = getenv("PYTHON_EXEC");

    if (given && *given) {
        *ret = given;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (in_path(names[i], a)) {
            *ret = names[i];
            return 0;
        }
    return err_set(
        err, ERR_NOT_FOUND,
        "the program needs Python, and there is no python3 in PATH (PYTHON_EXEC names one; --no-python "
        "runs the program by itself)");
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
