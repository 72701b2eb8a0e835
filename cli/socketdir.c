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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX "kubectl-ptj-"
#define SOCKET "s"

enum { NAME_LEN = sizeof(PREFIX "XXXXXX") - 1, BASE_MAX = SOCKETDIR_PATH_BYTES - NAME_LEN - 4, TRIES = 10 };

static const int ENDS[] = {SIGINT, SIGTERM, SIGHUP};

/* For socketdir_leave: a handler gets no argument of ours. */
static struct socketdir *volatile made;

/* Whether this folder is among the words of the process. A number of who listened may be another process's by now. */
static bool serves(pid_t pid, const char *folder)
{
    char path[32], words[64 << 10];

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = read(fd, words, sizeof(words));
    close(fd);
    return n > 0 && memmem(words, (size_t)n, folder, NAME_LEN);
}

/* With who listens there: where $KUBECTL is a script that does not `exec`, it outlives the script. */
static void remove_socket(const char *path, const char *folder)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct ucred who;
    socklen_t size = sizeof(who);

    strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && serves(who.pid, folder))
        kill(who.pid, SIGKILL);
    close(fd);
    unlink(path);
}

void socketdir_leave(void)
{
    const struct socketdir *d = made;

    if (!d)
        return;
    remove_socket(d->socket, d->path + strlen(d->path) - NAME_LEN);
    rmdir(d->path);
}

static void on_end(int signal_number)
{
    socketdir_leave();
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

/* The folder is ours, and no living process has locked it. */
static void remove_dead(int base, const char *name)
{
    struct stat st;
    char path[SOCKETDIR_PATH_BYTES];
    const int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d/" SOCKET, fd);
        remove_socket(path, name);
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

/* 0, or why not as errno. EWOULDBLOCK: another process took it for dead between mkdtemp and the lock. */
static int lock(struct socketdir *d)
{
    struct stat st = {0};

    d->lock = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool fails = d->lock < 0 || flock(d->lock, LOCK_EX | LOCK_NB) < 0 || fstat(d->lock, &st) < 0;
    if (!fails && st.st_nlink)
        return 0;
    const int why = fails ? errno : EWOULDBLOCK;
    close(d->lock);
    rmdir(d->path); /* without a lock the next one would take it for dead */
    return why == ENOENT ? EWOULDBLOCK : why;
}

int socketdir_make(struct socketdir *d, struct err *err)
{
    const char *base = base_of();
    int why = EWOULDBLOCK;

    remove_all_dead(base);
    for (int i = 0; i < TRIES && why == EWOULDBLOCK; i++) {
        snprintf(d->path, sizeof(d->path), "%.*s/" PREFIX "XXXXXX", BASE_MAX, base);
        why = mkdtemp(d->path) ? lock(d) : errno;
    }
    if (why) {
        err_errno(err, ERR_FATAL, why,
                  "%s, the folder of kubectl's socket (XDG_RUNTIME_DIR may name another one)", d->path);
        d->path[0] = '\0';
        return -1;
    }
    snprintf(d->socket, sizeof(d->socket), "%.*s/" SOCKET, (int)sizeof(d->path) - 3, d->path);
    made = d;
    set_handlers(SIG_DFL, on_end);
    return 0;
}

void socketdir_remove(struct socketdir *d)
{
    if (!d->path[0])
        return;
    set_handlers(on_end, SIG_DFL);
    socketdir_leave();
    made = NULL;
    close(d->lock);
    *d = (struct socketdir){0};
}
