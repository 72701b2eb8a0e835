/* store_wire.c - a store client's connection: send bytes and receive whole answers, before a deadline. */
#include "rendezvous/store_wire.h"
#include "common/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

int store_left_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms - clock_mono_ms();

    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static int timed_out(struct store *s, struct err *err)
{
    s->broken = true;
    return err_set(err, ERR_TIMEOUT, "store %s: deadline passed", s->where);
}

static int went_away(struct store *s, struct err *err)
{
    s->broken = true;
    return err_set(err, ERR_PEER, "store %s: the server went away", s->where);
}

static int wait_ready(struct store *s, short events, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        struct pollfd pfd = {.fd = s->fd, .events = events};
        int left = store_left_ms(deadline_ms), n = poll(&pfd, 1, left);
        if (n > 0)
            return 0;
        if (n == 0 && store_left_ms(deadline_ms) == 0)
            return timed_out(s, err);
        if (n < 0 && errno != EINTR)
            return err_errno(err, ERR_FATAL, errno, "store %s: poll", s->where);
    }
}

int store_send_out(struct store *s, int64_t deadline_ms, struct err *err)
{
    while (s->out.len) {
        ssize_t n = send(s->fd, s->out.data, s->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            buf_consume(&s->out, (size_t)n);
        else if (n < 0 && errno == EAGAIN) {
            if (wait_ready(s, POLLOUT, deadline_ms, err) < 0)
                return -1;
        } else if (!(n < 0 && errno == EINTR))
            return went_away(s, err);
    }
    return 0;
}

int store_read_answer(struct store *s, struct view *body, int64_t deadline_ms, struct err *err)
{
    char bytes[16 * 1024];
    size_t used;
    int rc;

    while ((rc = protocol_frame((struct view){s->in.data, s->in.len}, body, &used)) == 0) {
        ssize_t n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n > 0) {
            if (buf_append(&s->in, bytes, (size_t)n, err) < 0)
                rc = -1;
        } else if (n < 0 && errno == EAGAIN) {
            if (wait_ready(s, POLLIN, deadline_ms, err) < 0)
                return -1;
        } else if (!(n < 0 && errno == EINTR))
            return went_away(s, err);
        if (rc < 0)
            break;
    }
    if (rc > 0 && body->len >= 1)
        return 0;
    s->broken = true;
    return err_set(err, ERR_FATAL, "store %s: the server there is not a store of this program", s->where);
}
