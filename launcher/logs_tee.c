/* logs_tee.c - copy a rank's output from its pipe to files and to the console, without blocking on the
 * console; tee.h splits it into lines. */
#include "common/clock.h"
#include "common/fsutil.h"
#include "launcher/logs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* A turn is part of a burst of small writes if it read less than SMALL_BYTES, and the last such turn was
 * within BURST_MS. */
enum { READ_BYTES = 8192, WRITE_US = 20000, SMALL_BYTES = 4096, BURST_MS = 10 };

/* Write to a log file. A full disk must not stop the training, so a failed write loses its bytes. */
static void keep(int file, const char *bytes, size_t len)
{
    if (file >= 0 && fs_write_all(file, bytes, len) < 0)
        return;
}

static struct tee_out out_of(struct logs *l, int local, int s)
{
    const bool shown = l->options->shown[local] && !l->ranks[local].streams[s].hidden;

    return (struct tee_out){.sink = shown ? &l->sinks[s] : NULL,
                            .prefix = l->ranks[local].prefix,
                            .filters = l->options->filters[s],
                            .filtered = shown ? l->filtered[s] : -1};
}

/* Keep the stream's last bytes, as text: NUL becomes a space. */
static void remember(struct buf *tail, const char *bytes, size_t len)
{
    struct err full;

    if (len > tail->max) {
        bytes += len - tail->max;
        len = tail->max;
    }
    if (tail->len + len > tail->max)
        buf_consume(tail, tail->len + len - tail->max);
    if (buf_append(tail, bytes, len, &full) < 0)
        return;
    for (char *p = tail->data, *end = p + tail->len; (p = memchr(p, '\0', (size_t)(end - p)));)
        *p = ' ';
}

static void take(struct logs *l, int local, int s, const struct tee_out *out, const char *bytes, size_t len)
{
    struct log_stream *stream = &l->ranks[local].streams[s];
    struct err full;

    stream->heard_ms = clock_mono_ms();
    l->turn_bytes += len;
    if (l->heard)
        l->heard(l->heard_ctx, local, s, bytes, len);
    remember(&stream->tail, bytes, len);
    if (stream->teed) {
        keep(stream->file, bytes, len);
        tee_take(&stream->line, out, bytes, len);
    } else if (buf_append(out->sink, bytes, len, &full) < 0)
        return; /* cannot happen: pump reads only as much as the sink has room for */
}

/* Read from the pipe once; false when there is nothing more to read now, or no room for it. */
static bool pump(struct logs *l, int local, int s)
{
    struct log_stream *stream = &l->ranks[local].streams[s];
    const struct tee_out out = out_of(l, local, s);
    char bytes[READ_BYTES];
    size_t room = out.sink ? tee_room(&stream->line, out.sink, out.prefix) : sizeof(bytes);

    if (room == 0)
        return false;
    ssize_t n = read(stream->pipe, bytes, room < sizeof(bytes) ? room : sizeof(bytes));
    if (n > 0) {
        take(l, local, s, &out, bytes, (size_t)n);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    tee_flush(&stream->line, &out);
    close(stream->pipe);
    stream->pipe = -1;
    return false;
}

static bool in_mid_line(const struct log_stream *stream)
{
    const struct buf *tail = &stream->tail;

    return !stream->teed && tail->len && tail->data[tail->len - 1] != '\n';
}

/* Read a readable stream. If it is watched, also read the rest of its line that is in the pipe, so that other
 * ranks' bytes do not split the line. */
static void pump_turn(struct logs *l, int local, int s)
{
    for (int i = 0; i < LOGS_LINE_BYTES / READ_BYTES; i++)
        if (!pump(l, local, s) || !in_mid_line(&l->ranks[local].streams[s]))
            return;
}

static void interrupt(int signal)
{
    (void)signal;
}

/* How much to write at once: at most PIPE_BUF bytes, which a pipe accepts atomically; complete lines or
 * states of a progress bar, if at least one fits. */
static size_t piece(const char *bytes, size_t len)
{
    const size_t most = len < PIPE_BUF ? len : PIPE_BUF;
    size_t whole = most;

    while (whole && bytes[whole - 1] != '\n' && bytes[whole - 1] != '\r')
        whole--;
    return whole ? whole : most;
}

static bool has_room(int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};

    return poll(&pfd, 1, 0) > 0;
}

/* Write to a console in pieces while it is writable. Returns the number of bytes; -1 when the console is
 * closed. */
static ssize_t write_pieces(int fd, const char *bytes, size_t len)
{
    size_t done = 0;
    ssize_t n;

    do {
        n = write(fd, bytes + done, piece(bytes + done, len - done));
        done += n > 0 ? (size_t)n : 0;
    } while (n > 0 && done < len && has_room(fd));
    return n > 0 || errno == EAGAIN || errno == EINTR ? (ssize_t)done : -1;
}

/* Write for at most WRITE_US, also to a console that blocks: ranks share it, and one may fill it between poll
 * and write here. O_NONBLOCK would apply to the ranks' descriptors too. So a timer interrupts the write. */
static void drain_sink(struct buf *sink, int fd)
{
    const struct sigaction catch = {.sa_handler = interrupt}; /* no SA_RESTART */
    const struct itimerval tick = {{.tv_usec = WRITE_US}, {.tv_usec = WRITE_US}}, none = {{0}, {0}};
    struct sigaction before;

    sigaction(SIGALRM, &catch, &before);
    setitimer(ITIMER_REAL, &tick, NULL);
    const ssize_t done = write_pieces(fd, sink->data, sink->len);
    setitimer(ITIMER_REAL, &none, NULL);
    sigaction(SIGALRM, &before, NULL);
    if (done < 0)
        buf_clear(sink); /* the console is closed */
    else
        buf_consume(sink, (size_t)done);
}

int logs_poll_max(const struct logs *l)
{
    return LOGS_STREAMS * l->options->nproc + LOGS_STREAMS;
}

int logs_poll(const struct logs *l, struct pollfd *pfds)
{
    int n = 0;

    for (int s = 0; s < LOGS_STREAMS; s++)
        pfds[n++] = (struct pollfd){.fd = l->sinks[s].len ? STDOUT_FILENO + s : -1, .events = POLLOUT};
    for (int i = 0; i < l->options->nproc; i++)
        for (int s = 0; s < LOGS_STREAMS; s++) {
            const struct log_stream *stream = &l->ranks[i].streams[s];
            bool room = stream->pipe >= 0 && (!l->options->shown[i] || stream->hidden ||
                                              tee_room(&stream->line, &l->sinks[s], l->ranks[i].prefix));
            pfds[n++] = (struct pollfd){.fd = room ? stream->pipe : -1, .events = POLLIN};
        }
    return n;
}

/* Whether this turn is one of a burst. */
static bool bursts(struct logs *l)
{
    const int64_t before_ms = l->small_ms, now_ms = clock_mono_ms();

    if (!l->turn_bytes || l->turn_bytes >= SMALL_BYTES)
        return false;
    l->small_ms = now_ms;
    return before_ms && now_ms - before_ms < BURST_MS;
}

bool logs_turn(struct logs *l, const struct pollfd *pfds, int n)
{
    l->turn_bytes = 0;
    for (int s = 0; s < LOGS_STREAMS && s < n; s++)
        if (pfds[s].fd >= 0 && pfds[s].revents && l->sinks[s].len) {
            drain_sink(&l->sinks[s], pfds[s].fd);
            l->stuck[s] = false;
        }
    for (int i = LOGS_STREAMS; i < n; i++)
        if (pfds[i].fd >= 0 && pfds[i].revents)
            pump_turn(l, (i - LOGS_STREAMS) / LOGS_STREAMS, (i - LOGS_STREAMS) % LOGS_STREAMS);
    return bursts(l);
}

static void empty_sink(struct logs *l, int s, int64_t deadline_ms)
{
    bool moved = false;

    while (l->sinks[s].len) {
        struct pollfd pfd = {.fd = STDOUT_FILENO + s, .events = POLLOUT};
        int64_t left = l->stuck[s] ? 0 : deadline_ms - clock_mono_ms();
        if (left <= 0 && !l->stuck[s])
            break;
        if (poll(&pfd, 1, (int)left) <= 0) {
            l->stuck[s] = !moved;
            break;
        }
        drain_sink(&l->sinks[s], pfd.fd);
        l->stuck[s] = false;
        moved = true;
    }
}

/* Write the sinks until they are empty or the deadline has passed. */
static void empty_sinks(struct logs *l, int64_t deadline_ms)
{
    for (int s = 0; s < LOGS_STREAMS; s++)
        empty_sink(l, s, deadline_ms);
}

void logs_end(struct logs *l, int timeout_ms)
{
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;

    for (int i = 0; i < l->options->nproc; i++)
        for (int s = 0; s < LOGS_STREAMS; s++) {
            struct log_stream *stream = &l->ranks[i].streams[s];
            const struct tee_out out = out_of(l, i, s);
            do
                empty_sinks(l, deadline_ms);
            while (stream->pipe >= 0 && clock_mono_ms() < deadline_ms && pump(l, i, s));
            tee_flush(&stream->line, &out);
        }
    empty_sinks(l, deadline_ms);
}

void logs_say(struct logs *l, const char *text, int timeout_ms)
{
    const int64_t deadline_ms = clock_mono_ms() + timeout_ms;
    struct err full;

    empty_sink(l, 1, deadline_ms);
    if (buf_puts(&l->sinks[1], text, &full) == 0)
        empty_sink(l, 1, deadline_ms);
}
