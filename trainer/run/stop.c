/* stop.c - block SIGTERM and SIGINT and read them from a signalfd. */
#include "trainer/run/stop.h"

#include "collectives/collectives.h"
#include "common/contract.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

int stop_open(struct stop *s, struct err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    s->flags = 0;
    s->fd = -1;
    if (sigprocmask(SIG_BLOCK, &set, &s->before))
        return err_errno(err, ERR_FATAL, errno, "cannot block the stop signals");
    s->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->fd < 0) {
        int code = errno;
        sigprocmask(SIG_SETMASK, &s->before, NULL);
        return err_errno(err, ERR_FATAL, code, "cannot watch the stop signals");
    }
    return 0;
}

uint32_t stop_poll(struct stop *s)
{
    struct signalfd_siginfo info;

    while (s->fd >= 0 && read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        s->flags |= info.ssi_signo == SIGTERM ? COLLECTIVES_STOP_TERM : COLLECTIVES_STOP_INT;
    return s->flags;
}

void stop_close(struct stop *s)
{
    if (s->fd < 0)
        return;
    /* A signal since the last poll is pending, and would end a finished run when it is unblocked. */
    (void)stop_poll(s);
    close(s->fd);
    s->fd = -1;
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

int stop_exit_code(uint32_t flags)
{
    return flags & COLLECTIVES_STOP_TERM ? EXIT_CODE_TERMINATED : EXIT_CODE_INTERRUPTED;
}
