/* pty.c - run kubectl-ptj on a pseudo terminal. */
#include "test.h"

#include "pty.h"

#include "common/clock.h"

#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, ARGS_MAX = 32 };

void pty_start(struct pty *t, const struct ptj *p, const char *const *args, int columns, int rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    char *argv[ARGS_MAX] = {(char *)(uintptr_t) "kubectl-ptj"};
    char config[128];

    *t = (struct pty){0};
    vt_init(&t->vt, columns, rows);
    for (int i = 0; args[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)args[i];
    snprintf(config, sizeof(config), "%s/config", p->dir);
    t->pid = forkpty(&t->fd, NULL, NULL, &size);
    assert_true(t->pid >= 0);
    if (t->pid == 0) {
        setenv("KUBECONFIG", config, 1);
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        execv(p->program, argv);
        _exit(127);
    }
}

bool pty_read(struct pty *t, int timeout_ms)
{
    struct pollfd fd = {.fd = t->fd, .events = POLLIN};
    char bytes[16384];

    if (t->hung_up || poll(&fd, 1, timeout_ms) <= 0)
        return false;
    const ssize_t n = read(t->fd, bytes, sizeof(bytes));
    t->hung_up = n <= 0; /* EIO: the last one has closed the terminal */
    t->reads += n > 0;
    if (n > 0)
        vt_feed(&t->vt, bytes, (size_t)n);
    assert_string_equal(t->vt.unknown, "");
    return n > 0;
}

static bool has(const struct pty *t, const char *text)
{
    char *all = vt_text(&t->vt);
    const bool found = strstr(all, text);

    free(all);
    return found && !t->vt.in_update;
}

static void await(struct pty *t, const char *text, bool there)
{
    const int64_t end_ms = clock_mono_ms() + PATIENCE_MS;

    while (has(t, text) != there) {
        if (t->hung_up || clock_mono_ms() > end_ms)
            fail_msg("\"%s\" %s on the screen:\n%s", text, there ? "never came" : "stayed", vt_text(&t->vt));
        (void)pty_read(t, 100);
    }
}

void pty_until(struct pty *t, const char *text)
{
    await(t, text, true);
}

void pty_while(struct pty *t, const char *text)
{
    await(t, text, false);
}

void pty_keys(struct pty *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), strlen(keys));
}

void pty_resize(struct pty *t, int columns, int rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};

    vt_resize(&t->vt, columns, rows);
    assert_int_equal(ioctl(t->fd, TIOCSWINSZ, &size), 0);
}

bool pty_is_sane(const struct pty *t)
{
    struct termios now;

    return tcgetattr(t->fd, &now) == 0 && (now.c_lflag & ICANON) && (now.c_lflag & ECHO);
}

int pty_wait(struct pty *t)
{
    int status = 0;

    while (!t->hung_up)
        (void)pty_read(t, PATIENCE_MS);
    assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
    t->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void pty_end(struct pty *t)
{
    close(t->fd);
    if (t->pid > 0) {
        kill(t->pid, SIGKILL);
        waitpid(t->pid, NULL, 0);
    }
}
