/* source.c - open a data source by the row of its format. */
#include "trainer/data/source.h"

#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DATA_FORMAT_ROW(name) &format_##name,
const struct data_format *const data_formats[] = {DATA_FORMATS(DATA_FORMAT_ROW) NULL};

#define DATA_FORMAT_NAME(name) #name,
const char *const data_format_names[] = {DATA_FORMATS(DATA_FORMAT_NAME) NULL};

int source_path(const char *dir, const char *name, char out[static PATH_MAX], struct err *err)
{
    out[0] = '\0';
    if (!name)
        return 0;
    if (snprintf(out, PATH_MAX, "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/", name) >=
        PATH_MAX)
        return err_set(err, ERR_INVALID, "%.60s...: path too long", name);
    return 0;
}

struct source *source_open(const struct source_options *o, struct err *err)
{
    cleanup_source struct source *s = memory_must(calloc(1, sizeof(*s)));

    s->o = *o;
    if (o->spec->format->open(s, err) || layout_check(&s->layout, err))
        return NULL;
    return TAKE(s);
}

void source_free(struct source *s)
{
    for (int p = 0; s && p < SOURCE_PARTS; p++)
        tokens_free(s->tokens[p]);
    free(s);
}

static int32_t classes_of(const struct data_part *p, int32_t most)
{
    for (int64_t i = 0; p->labels && i < p->items; i++)
        if (p->labels[i] >= most)
            most = p->labels[i] + 1;
    return most;
}

void source_count_classes(struct dataset *d)
{
    d->layout.classes = classes_of(&d->test, classes_of(&d->train, 0));
}

/* Whether the file changed long enough ago: the resolution of a file system's times is at most 2 s. */
static bool is_settled(const struct timespec *changed, int64_t now_ms)
{
    return changed->tv_sec < now_ms / 1000 - SOURCE_SETTLED_S;
}

/* A file that was rewritten or replaced has another ctime. */
bool source_key_file(const char *path, int64_t now_ms, struct buf *key)
{
    struct stat st;
    struct err ignored;

    if (!path[0])
        return true;
    return !stat(path, &st) && is_settled(&st.st_ctim, now_ms) && is_settled(&st.st_mtim, now_ms) &&
           !buf_printf(key, &ignored, "%s %llu %llu %lld %lld.%09ld %lld.%09ld\n", path,
                       (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, (long long)st.st_size,
                       (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
                       st.st_ctim.tv_nsec);
}

bool source_key(const struct source *s, int64_t now_ms, struct buf *key)
{
    const struct data_format *f = s->o.spec->format;

    return f->key && f->key(s, now_ms, key);
}

int source_load(const struct source *s, struct dataset *d, struct err *err)
{
    return s->o.spec->format->load(s, d, err);
}
