/* tty.c - terminal modes of a display that redraws itself. */
#include "cli/watch/tty.h"

#include "common/cleanup.h"
#include "common/fsutil.h"

#include <signal.h>
#include <unistd.h>

/* Alternate screen, no cursor, no wrapping of long lines; and back. */
static const char BEGIN[] = "\x1b[?1049h\x1b[?25l\x1b[?7l", END[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/* And Ctrl-\, by which people end what does not answer. */
static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT};

/* For on_crash only: a handler gets no argument of ours. */
static struct tty *volatile shown;

static void restore(const struct tty *t)
{
    if (t->in >= 0)
        (void)tcsetattr(t->in, TCSANOW, &t->saved);
}

static void on_crash(int signal)
{
    struct tty *t = shown;

    if (t && t->active) {
        ssize_t ignored = t->normal ? 0 : write(t->out, END, sizeof(END) - 1);
        (void)ignored;
        restore(t);
    }
    raise(signal); /* SA_RESETHAND: by its default action now */
}

void tty_init(struct tty *t)
{
    *t = (struct tty){.in = isatty(STDIN_FILENO) ? STDIN_FILENO : -1, .out = STDOUT_FILENO};
}

static bool in_background(const struct tty *t)
{
    const pid_t foreground = tcgetpgrp(t->out);

    return foreground > 0 && foreground != getpgrp();
}

bool tty_begin(struct tty *t)
{
    struct termios raw;

    if (in_background(t)) {
        t->active = false;
        return false;
    }
    if (t->in >= 0 && !t->active && tcgetattr(t->in, &t->saved) < 0)
        t->in = -1;
    shown = t;
    t->active = true;
    for (size_t i = 0; i < ARRAY_LEN(CRASHES); i++)
        sigaction(CRASHES[i], &(struct sigaction){.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND},
                  NULL);
    if (t->in >= 0) {
        raw = t->saved;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(t->in, TCSANOW, &raw);
    }
    if (!t->normal)
        (void)tty_write(t, BEGIN, sizeof(BEGIN) - 1);
    return true;
}

void tty_alternate(struct tty *t, bool alternate)
{
    if (t->active && t->normal == alternate)
        (void)(alternate ? tty_write(t, BEGIN, sizeof(BEGIN) - 1) : tty_write(t, END, sizeof(END) - 1));
    t->normal = !alternate;
}

void tty_end(struct tty *t)
{
    if (!t->active)
        return;
    t->active = false;
    if (!t->normal)
        (void)tty_write(t, END, sizeof(END) - 1);
    if (!in_background(t))
        restore(t);
    for (size_t i = 0; i < ARRAY_LEN(CRASHES); i++)
        signal(CRASHES[i], SIG_DFL);
    shown = NULL;
}

void tty_stop(struct tty *t)
{
    sigset_t stop, old;

    tty_end(t);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, &old); /* it stops here */
    sigprocmask(SIG_SETMASK, &old, NULL);
}

int tty_write(const struct tty *t, const void *bytes, size_t len)
{
    return fs_write_all(t->out, bytes, len);
}
