/* socketdir.c - make and remove the folder of the socket, and remove those of processes that were killed. */
#include "cli/socketdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "kubectl-ptj-"
#define SOCKET "s"

enum { NAME_LEN = sizeof(PREFIX "XXXXXX") - 1, BASE_MAX = SOCKETDIR_PATH_BYTES - NAME_LEN - 4, TRIES = 10 };

static const int ENDS[] = {SIGINT, SIGTERM, SIGHUP};

/* For on_end only: a handler gets no argument of ours. */
static struct socketdir *volatile made;

static void on_end(int signal_number)
{
    const struct socketdir *d = made;

    if (d) {
        unlink(d->socket);
        rmdir(d->path);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    /* Blocked in here, it ends the process behind this line; process 1 of a container would live on without its socket. */
    if (getpid() == 1)
        _exit(128 + signal_number);
}

/* What is ignored stays ignored, as under nohup. */
static void set_handlers(void (*from)(int), void (*to)(int))
{
    struct sigaction now;

    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        if (sigaction(ENDS[i], NULL, &now) == 0 && now.sa_handler == from)
            signal(ENDS[i], to);
}

static const char *base_of(void)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");

    return dir && dir[0] == '/' && strlen(dir) <= BASE_MAX && access(dir, W_OK | X_OK) == 0 ? dir : "/tmp";
}

/* The folder is ours, and nobody that lives has locked it. */
static void remove_dead(int base, const char *name)
{
    struct stat st;
    const int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        unlinkat(fd, SOCKET, 0);
        unlinkat(base, name, AT_REMOVEDIR);
    }
    close(fd);
}

static void remove_all_dead(const char *base)
{
    DIR *dir = opendir(base);
    const struct dirent *e;

    while (dir && (e = readdir(dir)))
        if (strlen(e->d_name) == NAME_LEN && strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) == 0)
            remove_dead(dirfd(dir), e->d_name);
    if (dir)
        closedir(dir);
}

/* False: another process took it for dead between mkdtemp and the lock. */
static bool lock(struct socketdir *d)
{
    struct stat st;

    d->lock = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (d->lock < 0)
        return false;
    if (flock(d->lock, LOCK_EX | LOCK_NB) == 0 && fstat(d->lock, &st) == 0 && st.st_nlink)
        return true;
    close(d->lock);
    return false;
}

int socketdir_make(struct socketdir *d, struct err *err)
{
    const char *base = base_of();

    remove_all_dead(base);
    for (int i = 0; i < TRIES; i++) {
        snprintf(d->path, sizeof(d->path), "%.*s/" PREFIX "XXXXXX", BASE_MAX, base);
        if (!mkdtemp(d->path)) {
            err_errno(err, ERR_FATAL, errno,
                      "%s, the folder of kubectl's socket (XDG_RUNTIME_DIR may name another one)", d->path);
            d->path[0] = '\0';
            return -1;
        }
        if (!lock(d))
            continue;
        snprintf(d->socket, sizeof(d->socket), "%.*s/" SOCKET, (int)sizeof(d->path) - 3, d->path);
        made = d;
        set_handlers(SIG_DFL, on_end);
        return 0;
    }
    d->path[0] = '\0';
    return err_set(err, ERR_FATAL, "%s: the folder of kubectl's socket is removed again and again", base);
}

void socketdir_remove(struct socketdir *d)
{
    if (!d->path[0])
        return;
    set_handlers(on_end, SIG_DFL);
    made = NULL;
    unlink(d->socket);
    rmdir(d->path);
    close(d->lock);
    *d = (struct socketdir){0};
}
