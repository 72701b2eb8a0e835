/* progress_file.c - read the progress file that a training writes. */
#include "launcher/progress/progress_file.h"
#include "common/cleanup.h"
#include "launcher/members.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void take_member(struct progress_seen *s, const struct json_member *m)
{
    const struct {
        const char *name; /* with its quotes */
        int64_t *count;
    } counts[] = {{"\"step\"", &s->step},
                  {"\"totalSteps\"", &s->total_steps},
                  {"\"epoch\"", &s->epoch},
                  {"\"totalEpochs\"", &s->total_epochs}};
    double v;

    if (!sv_f64(sv_trim(m->value), &v))
        return;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (sv_eq(m->name, counts[i].name) && v >= 0 && v <= (double)PROGRESS_COUNT_MAX)
            *counts[i].count = (int64_t)v;
    if (sv_eq(m->name, "\"percent\"") && v >= 0 && v <= 100)
        s->percent = v;
    if (sv_eq(m->name, "\"loss\""))
        s->loss = v;
    if (sv_eq(m->name, "\"samplesPerSecond\"") && v >= 0)
        s->samples_per_second = v;
}

/* Whether there is a value besides totals: a file with totals alone does not replace the lines. */
static bool says_where(const struct progress_seen *s)
{
    return s->step >= 0 || s->epoch >= 0 || isfinite(s->percent) || isfinite(s->loss) ||
           isfinite(s->samples_per_second);
}

bool progress_file_parse(struct sv text, struct progress_seen *ret)
{
    char whole[PROGRESS_FILE_BYTES + 1] = "";
    struct progress_seen s = progress_nothing();
    struct json_member m;

    *ret = s;
    text = sv_trim(text);
    if (text.len > PROGRESS_FILE_BYTES || !sv_starts(text, "{") || memchr(text.p, '\0', text.len))
        return false;
    memcpy(whole, text.p, text.len);
    const char *p = whole + 1;
    while (members_next(&p, &m))
        take_member(&s, &m);
    if (strcmp(p, "}") != 0 || !says_where(&s))
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
    const struct progress_file before = *f;
    *f = (struct progress_file){st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_size, st.st_ino};
    if (memcmp(&before, f, sizeof(before)) == 0)
        return false;
    while (len < sizeof(text) && (n = read(fd, text + len, sizeof(text) - len)) > 0)
        len += (size_t)n;
    return len <= PROGRESS_FILE_BYTES && progress_file_parse((struct sv){text, len}, ret);
}
