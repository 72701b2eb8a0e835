/* progress_file.c - read the progress that a training keeps in a file of its own. */
#include "launcher/progress/progress_file.h"
#include "common/cleanup.h"
#include "common/fsutil.h"

#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SPACES[] = " \t\r\n";

struct member {
    const char *name;
    size_t at; /* in struct progress_seen */
    bool count;
    double max;
};

#define MEMBER(name, field, count, max)                                                                      \
    {                                                                                                        \
        name, offsetof(struct progress_seen, field), count, max                                              \
    }
static const struct member MEMBERS[] = {
    MEMBER("step", step, true, (double)PROGRESS_COUNT_MAX),
    MEMBER("totalSteps", total_steps, true, (double)PROGRESS_COUNT_MAX),
    MEMBER("epoch", epoch, true, (double)PROGRESS_COUNT_MAX),
    MEMBER("totalEpochs", total_epochs, true, (double)PROGRESS_COUNT_MAX),
    MEMBER("percent", percent, false, 100),
    MEMBER("loss", loss, false, HUGE_VAL),
    MEMBER("samplesPerSecond", samples_per_second, false, HUGE_VAL),
};

static void skip_spaces(struct sv *rest)
{
    while (rest->len && memchr(SPACES, *rest->p, sizeof(SPACES) - 1))
        *rest = (struct sv){rest->p + 1, rest->len - 1};
}

static bool skip_char(struct sv *rest, char c)
{
    skip_spaces(rest);
    if (!rest->len || *rest->p != c)
        return false;
    *rest = (struct sv){rest->p + 1, rest->len - 1};
    return true;
}

/* A string behind its first quote; *ret is its content as written. */
static bool skip_string(struct sv *rest, struct sv *ret)
{
    for (size_t i = 0; i < rest->len; i++) {
        if (rest->p[i] == '"') {
            *ret = (struct sv){rest->p, i};
            *rest = (struct sv){rest->p + i + 1, rest->len - i - 1};
            return true;
        }
        i += rest->p[i] == '\\';
    }
    return false;
}

/* Up to the comma or bracket that ends the value: a value that is no number is passed over, whatever is in it. */
static bool skip_value(struct sv *rest, struct sv *ret)
{
    const struct sv all = *rest;
    struct sv ignored;

    for (int depth = 0; rest->len;) {
        const char c = *rest->p;
        if (depth == 0 && (c == ',' || c == '}')) {
            *ret = sv_trim((struct sv){all.p, all.len - rest->len});
            return ret->len > 0;
        }
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        *rest = (struct sv){rest->p + 1, rest->len - 1};
        if (c == '"' && !skip_string(rest, &ignored))
            return false;
    }
    return false;
}

static void take_member(struct progress_seen *s, struct sv name, struct sv value)
{
    double v;

    if (!sv_f64(value, &v))
        return;
    for (size_t i = 0; i < sizeof(MEMBERS) / sizeof(*MEMBERS); i++) {
        const struct member *m = &MEMBERS[i];
        char *field = (char *)s + m->at;
        if (!sv_eq(name, m->name) || v > m->max || (m->at != offsetof(struct progress_seen, loss) && v < 0))
            continue;
        if (m->count)
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
    struct progress_seen s = progress_nothing();
    struct sv name, value;

    *ret = s;
    if (!skip_char(&text, '{'))
        return false;
    do {
        if (!skip_char(&text, '"') || !skip_string(&text, &name) || !skip_char(&text, ':') ||
            !skip_value(&text, &value))
            return false;
        take_member(&s, name, value);
    } while (skip_char(&text, ','));
    if (!skip_char(&text, '}'))
        return false;
    skip_spaces(&text);
    if (text.len || !says_something(&s))
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
