/* subprocess.c - run a program under the event loop by posix_spawn, and kill its process group when it takes too long. */
#include "kube/auth/subprocess.h"

#include "common/buf.h"
#include "common/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { READ_BYTES = 4096, READS_PER_TURN = 16 };

struct subprocess {
    struct kube_loop *loop;
    void (*done)(void *ctx, struct subprocess *c);
    void *ctx;
    pid_t pid; /* -1: waited for */
    struct kube_loop_fd out, errors, process;
    struct kube_loop_timer deadline;
    struct buf output;
    char tail[SUBPROCESS_TAIL_BYTES + READ_BYTES];
    size_t n_tail;
    enum subprocess_end end;
    int code;
};

static void close_fd(struct subprocess *c, struct kube_loop_fd *f)
{
    kube_loop_fd_remove(c->loop, f);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

static void kill_group(struct subprocess *c, enum subprocess_end why)
{
    if (c->end == SUBPROCESS_EXITED)
        c->end = why;
    (void)kill(-c->pid, SIGKILL);
}

void subprocess_free(struct subprocess *c)
{
    if (!c)
        return;
    kube_loop_timer_cancel(c->loop, &c->deadline);
    if (c->pid > 0) {
        /* Dead at once: this is no wait that one could notice. */
        kill_group(c, SUBPROCESS_KILLED);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close_fd(c, &c->out);
    close_fd(c, &c->errors);
    close_fd(c, &c->process);
    if (c->output.data)
        explicit_bzero(c->output.data, c->output.cap);
    buf_release(&c->output);
    free(c);
}

/* What is there, without waiting; closes the descriptor at its end. */
static void drain(struct subprocess *c, struct kube_loop_fd *f,
                  void (*take)(struct subprocess *c, const char *p, size_t n))
{
    char bytes[READ_BYTES];

    for (int i = 0; i < READS_PER_TURN && f->fd >= 0; i++) {
        ssize_t n = read(f->fd, bytes, sizeof(bytes));
        if (n > 0)
            take(c, bytes, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_fd(c, f);
        else
            break;
    }
    explicit_bzero(bytes, sizeof(bytes));
}

static void take_output(struct subprocess *c, const char *p, size_t n)
{
    struct err ignored;

    if (c->end == SUBPROCESS_EXITED && buf_append(&c->output, p, n, &ignored) < 0)
        kill_group(c, SUBPROCESS_TOO_MUCH);
}

static void take_error(struct subprocess *c, const char *p, size_t n)
{
    memcpy(c->tail + c->n_tail, p, n);
    c->n_tail += n;
    if (c->n_tail <= SUBPROCESS_TAIL_BYTES)
        return;
    memmove(c->tail, c->tail + c->n_tail - SUBPROCESS_TAIL_BYTES, SUBPROCESS_TAIL_BYTES);
    c->n_tail = SUBPROCESS_TAIL_BYTES;
}

static void on_output(void *ctx, short revents)
{
    struct subprocess *c = ctx;

    (void)revents;
    drain(c, &c->out, take_output);
}

static void on_errors(void *ctx, short revents)
{
    struct subprocess *c = ctx;

    (void)revents;
    drain(c, &c->errors, take_error);
}

static void on_deadline(void *ctx)
{
    kill_group(ctx, SUBPROCESS_TOO_LATE);
}

static void judge(struct subprocess *c, pid_t pid, int status)
{
    if (pid < 0) {
        c->end = SUBPROCESS_LOST;
    } else if (WIFEXITED(status)) {
        c->code = WEXITSTATUS(status);
    } else {
        c->end = SUBPROCESS_KILLED;
        c->code = WTERMSIG(status);
    }
}

/* All that it wrote is in the pipes by now. Others may hold them open for ever, so their end is not waited for. */
static void on_exit_of(void *ctx, short revents)
{
    struct subprocess *c = ctx;
    int status = 0;

    (void)revents;
    pid_t pid = waitpid(c->pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return;
    while (c->out.fd >= 0 && c->end == SUBPROCESS_EXITED) {
        size_t before = c->output.len;
        drain(c, &c->out, take_output);
        if (c->output.len == before)
            break;
    }
    drain(c, &c->errors, take_error);
    c->pid = -1;
    if (c->end == SUBPROCESS_EXITED)
        judge(c, pid, status);
    kube_loop_timer_cancel(c->loop, &c->deadline);
    close_fd(c, &c->out);
    close_fd(c, &c->errors);
    close_fd(c, &c->process);
    c->done(c->ctx, c);
}

/* Its environment for signals: nothing blocked, nothing ignored that we ignore. */
static void set_attributes(posix_spawnattr_t *a)
{
    sigset_t none, usual;

    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_init(a);
    posix_spawnattr_setpgroup(a, 0);
    posix_spawnattr_setsigmask(a, &none);
    posix_spawnattr_setsigdefault(a, &usual);
    posix_spawnattr_setflags(a, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(const struct subprocess_spec *spec, int out, int errors, pid_t *ret, struct err *err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    set_attributes(&attributes);
    /* Both are only read; the prototype is older than const. */
    int rc = posix_spawnp(ret, spec->argv[0], &files, &attributes, (char *const *)(uintptr_t)spec->argv,
                          (char *const *)(uintptr_t)spec->env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (rc == 0)
        return 0;
    return err_errno(err, rc == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, rc, "%.120s", spec->argv[0]);
}

static int open_pipe(struct subprocess *c, struct kube_loop_fd *ours, int *ret_theirs, struct err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(err, ERR_FATAL, errno, "pipe");
    ours->fd = fds[0];
    *ret_theirs = fds[1];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
        return err_errno(err, ERR_FATAL, errno, "pipe");
    return kube_loop_fd_add(c->loop, ours, err);
}

static int start(struct subprocess *c, const struct subprocess_spec *spec, struct err *err)
{
    cleanup_close int out = -1;
    cleanup_close int errors = -1;

    if (open_pipe(c, &c->out, &out, err) < 0 || open_pipe(c, &c->errors, &errors, err) < 0)
        return -1;
    if (spawn(spec, out, errors, &c->pid, err) < 0) {
        c->pid = -1;
        return -1;
    }
    c->process.fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->process.fd < 0)
        return err_errno(err, ERR_FATAL, errno, "pidfd_open");
    return kube_loop_fd_add(c->loop, &c->process, err);
}

struct subprocess *subprocess_start(struct kube_loop *l, const struct subprocess_spec *spec, struct err *err)
{
    struct subprocess *c = memory_must(calloc(1, sizeof(*c)));

    *c = (struct subprocess){.loop = l, .done = spec->done, .ctx = spec->ctx, .pid = -1};
    c->output = (struct buf)BUF_INIT(spec->output_max_bytes);
    c->out = (struct kube_loop_fd){.ready = on_output, .ctx = c, .fd = -1, .events = POLLIN};
    c->errors = (struct kube_loop_fd){.ready = on_errors, .ctx = c, .fd = -1, .events = POLLIN};
    c->process = (struct kube_loop_fd){.ready = on_exit_of, .ctx = c, .fd = -1, .events = POLLIN};
    c->deadline = (struct kube_loop_timer){.fire = on_deadline, .ctx = c};
    if (start(c, spec, err) < 0) {
        subprocess_free(c);
        return NULL;
    }
    kube_loop_timer_set(l, &c->deadline, kube_loop_now_ms(l) + spec->deadline_ms);
    return c;
}

enum subprocess_end subprocess_end(const struct subprocess *c, int *ret_code)
{
    *ret_code = c->code;
    return c->end;
}

struct sv subprocess_output(const struct subprocess *c)
{
    return (struct sv){buf_str(&c->output), c->output.len};
}

/* Runs of blanks and control characters are one blank. */
void subprocess_tail(const struct subprocess *c, char out[static SUBPROCESS_TAIL_BYTES + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_tail; i++) {
        unsigned char b = (unsigned char)c->tail[i];
        bool blank = b <= ' ' || b == 0x7f;
        if (!blank)
            out[n++] = (char)b;
        else if (n && out[n - 1] != ' ')
            out[n++] = ' ';
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}
