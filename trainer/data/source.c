/* source.c - open a data source of any format: IDX, tokens or synthetic. */
#include "trainer/data/source.h"
#include "trainer/data/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TRAIN, TEST, PARTS };

/* What is known of a part's files; a path of "" is none. */
struct files {
    char x[PATH_MAX];
    char y[PATH_MAX];
    struct tokens *tokens;
};

struct source {
    struct source_options o;
    struct data_layout layout;
    struct dataset_files idx;
    struct files part[PARTS];
};

/* Files of tokens are named by a pattern: in it the folder stands for itself. */
static int path_of(const struct source *s, const char *name, char out[static PATH_MAX], struct err *err)
{
    char dir[PATH_MAX] = "";
    size_t len = 0;

    if (!name)
        return 0;
    if (name[0] != '/')
        len = s->o.spec->format == SOURCE_TOKENS ? tokens_pattern_of(s->o.dir, dir, sizeof(dir))
                                                 : (size_t)snprintf(dir, sizeof(dir), "%s", s->o.dir);
    if (len < sizeof(dir))
        len = (size_t)snprintf(out, PATH_MAX, "%s%s%s", dir, name[0] == '/' ? "" : "/", name);
    return len < PATH_MAX ? 0 : err_set(err, ERR_INVALID, "%.60s...: path too long", name);
}

static int paths(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;

    return path_of(s, d->train, s->part[TRAIN].x, err) ||
                   path_of(s, d->train_targets, s->part[TRAIN].y, err) ||
                   path_of(s, d->test, s->part[TEST].x, err) ||
                   path_of(s, d->test_targets, s->part[TEST].y, err)
               ? -1
               : 0;
}

/* ---- IDX ---- */

static int open_idx(struct source *s, struct err *err)
{
    if (!s->o.spec->train) {
        if (dataset_find(s->o.dir, s->o.name, &s->idx, err))
            return -1;
    } else {
        for (int p = 0; p < PARTS; p++) {
            memcpy(s->idx.path[2 * p], s->part[p].x, PATH_MAX);
            memcpy(s->idx.path[2 * p + 1], s->part[p].y, PATH_MAX);
            if (s->part[p].x[0] && dataset_probe_pair(&s->idx, (enum dataset_part)(2 * p), err))
                return -1;
        }
        if (s->part[TEST].x[0] && dataset_check_sides(&s->idx, err))
            return -1;
    }
    s->layout = dataset_layout(&s->idx);
    return 0;
}

/* ---- synthetic ---- */

static int open_synthetic(struct source *s)
{
    const struct data_spec *d = s->o.spec;

    s->layout = (struct data_layout){.train_items = d->items,
                                     .rows = d->rows,
                                     .cols = d->cols,
                                     .channels = d->channels,
                                     .floats = 1,
                                     .values = d->values ? d->synthetic.outputs : 0};
    return 0;
}

static int load_synthetic(const struct source *s, struct dataset *d, struct err *err)
{
    struct torch_rng g;

    torch_rng_seed(&g, s->o.seed);
    return synthetic_make(&s->o.spec->synthetic, &g, d, err);
}

/* ---- tokens ---- */

static int open_tokens(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;

    for (int p = 0; p < PARTS; p++) {
        struct files *f = &s->part[p];
        if (f->x[0] && !(f->tokens = tokens_open(f->x, d->rows, err)))
            return -1;
    }
    s->layout =
        (struct data_layout){.train_items = tokens_windows(s->part[TRAIN].tokens),
                             .test_items = s->part[TEST].tokens ? tokens_windows(s->part[TEST].tokens) : 0,
                             .rows = d->rows,
                             .cols = 1,
                             .channels = 1,
                             .steps = d->rows};
    return 0;
}

static void show_tokens(const struct source *s, struct dataset *d)
{
    d->train.tokens = s->part[TRAIN].tokens;
    d->test.tokens = s->part[TEST].tokens;
    d->layout.classes = tokens_vocab(d->train.tokens);
}

/* ---- all ---- */

static int open_format(struct source *s, struct err *err)
{
    switch (s->o.spec->format) {
    case SOURCE_IDX:
        return open_idx(s, err);
    case SOURCE_SYNTHETIC:
        return open_synthetic(s);
    case SOURCE_TOKENS:
        return open_tokens(s, err);
    }
    return -1;
}

struct source *source_open(const struct source_options *o, struct err *err)
{
    cleanup_source struct source *s = calloc(1, sizeof(*s));

    if (!s) {
        err_memory(err, "no memory to open the data set");
        return NULL;
    }
    s->o = *o;
    if (paths(s, err) || open_format(s, err) || layout_check(&s->layout, err))
        return NULL;
    return TAKE(s);
}

void source_free(struct source *s)
{
    for (int p = 0; s && p < PARTS; p++)
        tokens_free(s->part[p].tokens);
    free(s);
}

const struct data_layout *source_layout(const struct source *s)
{
    return &s->layout;
}

static int32_t classes_of(const struct data_part *p, int32_t most)
{
    for (int64_t i = 0; p->labels && i < p->items; i++)
        if (p->labels[i] >= most)
            most = p->labels[i] + 1;
    return most;
}

/* The times of a file are multiples of a tick of its file system's clock, which is at most 2 s. */
static bool is_settled(const struct timespec *changed, int64_t now_ms)
{
    return changed->tv_sec < now_ms / 1000 - SOURCE_SETTLED_S;
}

/* A file that was written again or replaced has another time of its last change, whatever its other times say. */
static bool add_file(const char *path, int64_t now_ms, struct buf *key)
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
    const struct data_spec *d = s->o.spec;
    struct err ignored;

    if (d->format != SOURCE_IDX || buf_printf(key, &ignored, "%d\n", d->train != NULL))
        return false;
    for (int i = 0; i < DATASET_PARTS; i++)
        if (!add_file(s->idx.path[i], now_ms, key))
            return false;
    return true;
}

int source_load(const struct source *s, struct dataset *d, struct err *err)
{
    bool family = !s->o.spec->train; /* MNIST's */
    int rc = 0;

    switch (s->o.spec->format) {
    case SOURCE_IDX:
        rc = dataset_load(&s->idx, d, family ? DATASET_CLASSES : UINT8_MAX + 1, err);
        break;
    case SOURCE_SYNTHETIC:
        rc = load_synthetic(s, d, err);
        break;
    case SOURCE_TOKENS:
        show_tokens(s, d);
        return 0;
    }
    if (!rc)
        d->layout.classes = classes_of(&d->test, classes_of(&d->train, 0));
    return rc;
}
