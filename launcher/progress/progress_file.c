/* progress_file.c - read the progress that a training keeps in a file of its own. */
#include "launcher/progress/progress_file.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "launcher/members.h"

#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct figure {
    const char *name; /* with its quotes */
    size_t at;        /* in struct progress_seen */
    bool count;
    double max;
};

#define FIGURE(name, field, count, max)                                                                      \
    {                                                                                                        \
        "\"" name "\"", offsetof(struct progress_seen, field), count, max                                    \
    }
static const struct figure FIGURES[] = {
    FIGURE("step", step, true, (double)PROGRESS_COUNT_MAX),
    FIGURE("totalSteps", total_steps, true, (double)PROGRESS_COUNT_MAX),
    FIGURE("epoch", epoch, true, (double)PROGRESS_COUNT_MAX),
    FIGURE("totalEpochs", total_epochs, true, (double)PROGRESS_COUNT_MAX),
    FIGURE("percent", percent, false, 100),
    FIGURE("loss", loss, false, HUGE_VAL),
    FIGURE("samplesPerSecond", samples_per_second, false, HUGE_VAL),
};

static void take_member(struct progress_seen *s, const struct member *m)
{
    double v;

    if (!sv_f64(sv_trim(m->value), &v))
        return;
    for (size_t i = 0; i < ARRAY_LEN(FIGURES); i++) {
        const struct figure *f = &FIGURES[i];
        char *field = (char *)s + f->at;
        if (!sv_eq(m->name, f->name) || v > f->max ||
            (f->at != offsetof(struct progress_seen, loss) && v < 0))
            continue;
        if (f->count)
            *(int64_t *)(void *)field = (int64_t)v;
        else
            *(double *)(void *)field = v;
    }
}

static bool says_something(const struct progress_seen *s)
{
    return s->step >= 0 || s->epoch >= 0 || isfinite(s->percent) || isfinite(s->loss) ||
           isfinite(s->samples_per_second);
}

bool progress_file_parse(struct sv text, struct progress_seen *ret)
{
    char whole[PROGRESS_FILE_BYTES + 1] = "";
    struct progress_seen s = progress_nothing();
    struct member m;

    *ret = s;
    text = sv_trim(text);
    if (text.len > PROGRESS_FILE_BYTES || !sv_starts(text, "{") || memchr(text.p, '\0', text.len))
        return false;
    memcpy(whole, text.p, text.len);
    const char *p = whole + 1;
    while (members_next(&p, &m))
        take_member(&s, &m);
    if (strcmp(p, "}") != 0 || !says_something(&s))
        return false;
    *ret = s;
    return true;
}

bool progress_file_read(struct progress_file *f, const char *path, struct progress_seen *ret)
{
    char text[PROGRESS_FILE_BYTES + 1];
    size_t len = 0;
    struct stat st;
    ssize_t n;

    *ret = progress_nothing();
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    const struct progress_file now = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_size, st.st_ino};
    if (now.mtime_s == f->mtime_s && now.mtime_ns == f->mtime_ns && now.size == f->size &&
        now.inode == f->inode)
        return false;
    *f = now;
    while (len < sizeof(text) && (n = read(fd, text + len, sizeof(text) - len)) > 0)
        len += (size_t)n;
    return len <= PROGRESS_FILE_BYTES && progress_file_parse((struct sv){text, len}, ret);
}
