/* progress_writer.c - write a run's progress to a file for the launcher. */
#include "trainer/run/progress_writer.h"

#include "host/rank_contract.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVERY_MS = 1000, FILE_BYTES = 256 };

int progress_writer_open(struct progress_writer *w, const char *path, struct err *err)
{
    struct stat st;

    *w = (struct progress_writer){.fd = -1};
    if (!path || !*path)
        return 0;
    /* O_NONBLOCK: do not wait for the reader of a FIFO. */
    w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (w->fd < 0)
        return err_set(err, ERR_FATAL, "no progress is written: " CONTRACT_ENV_PROGRESS_FILE "=%s: %s", path,
                       strerror(errno));
    if (fstat(w->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        progress_writer_close(w);
        return err_set(err, ERR_FATAL,
                       "no progress is written: " CONTRACT_ENV_PROGRESS_FILE "=%s: expected a regular file",
                       path);
    }
    return 0;
}

/* Pad the line with spaces, so that a reader never sees the rest of a longer one. */
static void format(const struct pace_view *v, char text[static FILE_BYTES + 1])
{
    char loss[40] = "", rate[48] = "", members[FILE_BYTES];

    if (isfinite(v->loss))
        snprintf(loss, sizeof(loss), ", \"loss\": %.9g", v->loss);
    if (isfinite(v->samples_per_s))
        snprintf(rate, sizeof(rate), ", \"samplesPerSecond\": %.6g", v->samples_per_s);
    snprintf(members, sizeof(members),
             "{\"step\": %lld, \"totalSteps\": %lld, \"epoch\": %lld, \"totalEpochs\": %lld%s%s}",
             (long long)v->done, (long long)v->total, (long long)v->epoch, (long long)v->epochs, loss, rate);
    snprintf(text, FILE_BYTES + 1, "%-*s\n", FILE_BYTES - 1, members);
}

void progress_writer_step(struct progress_writer *w, int64_t now_ms, const struct pace_view *v)
{
    char text[FILE_BYTES + 1];

    if (w->fd < 0 || (now_ms < w->due_ms && v->done < v->total))
        return;
    format(v, text);
    (void)!pwrite(w->fd, text, FILE_BYTES, 0);
    w->due_ms = now_ms + EVERY_MS;
}

void progress_writer_close(struct progress_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}
