/* onpty.c - run kubectl-ptj on a pseudo terminal. */
#include "test.h"

#include "onpty.h"

#include "common/clock.h"
#include "signals.h"

#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { PATIENCE_MS = 600000, ARGS_MAX = 32 };

static void begin(struct onpty *t, const struct ptj *p, const char *program, char **argv, int columns,
                  int rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};

    *t = (struct onpty){0};
    vt_init(&t->vt, columns, rows);
    t->pid = forkpty(&t->fd, NULL, NULL, &size);
    assert_true(t->pid >= 0);
    if (t->pid == 0) {
        signals_default();
        ptj_environment(p);
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        setenv("PTJ", p->program, 1);
        setenv("PS1", "prompt> ", 1);
        execvp(program, argv);
        _exit(127);
    }
}

void onpty_start(struct onpty *t, const struct ptj *p, const char *const *args, int columns, int rows)
{
    char *argv[ARGS_MAX] = {(char *)(uintptr_t) "kubectl-ptj"};

    for (int i = 0; args[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)args[i];
    begin(t, p, p->program, argv, columns, rows);
}

void onpty_shell(struct onpty *t, const struct ptj *p, int columns, int rows)
{
    char *argv[] = {(char *)(uintptr_t) "bash",        (char *)(uintptr_t) "--norc",
                    (char *)(uintptr_t) "--noprofile", (char *)(uintptr_t) "--noediting",
                    (char *)(uintptr_t) "-i",          NULL};

    begin(t, p, "bash", argv, columns, rows);
    onpty_until(t, "prompt>");
}

bool onpty_read(struct onpty *t, int timeout_ms)
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

static bool has(const struct onpty *t, const char *text)
{
    char *all = vt_text(&t->vt);
    const bool found = strstr(all, text);

    free(all);
    return found && !t->vt.in_update;
}

static void await(struct onpty *t, const char *text, bool there)
{
    const int64_t end_ms = clock_mono_ms() + PATIENCE_MS;

    while (has(t, text) != there) {
        if (t->hung_up || clock_mono_ms() > end_ms)
            fail_msg("\"%s\" %s on the screen:\n%s", text, there ? "never came" : "stayed", vt_text(&t->vt));
        (void)onpty_read(t, 100);
    }
}

void onpty_until(struct onpty *t, const char *text)
{
    await(t, text, true);
}

void onpty_while(struct onpty *t, const char *text)
{
    await(t, text, false);
}

void onpty_keys(struct onpty *t, const char *keys)
{
    assert_int_equal(write(t->fd, keys, strlen(keys)), strlen(keys));
}

void onpty_resize(struct onpty *t, int columns, int rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};

    vt_resize(&t->vt, columns, rows);
    assert_int_equal(ioctl(t->fd, TIOCSWINSZ, &size), 0);
}

bool onpty_is_sane(const struct onpty *t)
{
    struct termios now;

    return tcgetattr(t->fd, &now) == 0 && (now.c_lflag & ICANON) && (now.c_lflag & ECHO);
}

int onpty_wait(struct onpty *t)
{
    int status = 0;

    while (!t->hung_up)
        (void)onpty_read(t, PATIENCE_MS);
    assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
    t->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void onpty_end(struct onpty *t)
{
    close(t->fd);
    if (t->pid > 0) {
        kill(t->pid, SIGKILL);
        waitpid(t->pid, NULL, 0);
    }
}
