/* tokens.c - map token shards, and find the file and offset of a window. */
#include "trainer/data/tokens.h"

#include "common/endian.h"
#include "common/memory.h"
#include "common/sv.h"
#include "common/text.h"
#include "trainer/data/first_bytes.h"
#include "trainer/data/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct file {
    char *path;
    void *map;
    size_t map_bytes;
    const uint8_t *first; /* the first token */
    int width;            /* bytes of one */
    int64_t count;
    int64_t window; /* the number of its first window */
};

struct tokens {
    struct file *file;
    size_t files;
    int32_t time;
    int64_t windows, count;
};

/* llm.c's files begin with a number that is a date in 2024: tokens, weights, questions, or tokens of 32
 * bits. */
static bool is_llmc(uint32_t magic)
{
    return magic / 10000 == TOKENS_SHARD_MAGIC / 10000;
}

/* Whether it may be nanoGPT's format: uint16 without a header. */
static bool is_raw(const uint8_t *p, size_t bytes)
{
    char name[FIRST_BYTES_NAME];

    return bytes >= 4 && bytes % 2 == 0 && !is_llmc(le_get32(p)) && !first_bytes_name(p, bytes, name);
}

int tokens_shard_parse(const char *path, const void *file, size_t bytes, int64_t *ret_count, struct err *err)
{
    const uint8_t *p = file;
    char name[FIRST_BYTES_NAME];

    if ((bytes < 4 || le_get32(p) != TOKENS_SHARD_MAGIC) && first_bytes_name(file, bytes, name))
        return err_set(err, ERR_INVALID, "%s: %s, expected llm.c's shard of tokens", path, name);
    if (bytes < TOKENS_SHARD_HEADER)
        return err_set(err, ERR_INVALID, "%s: size: %zu bytes, expected a header of %d", path, bytes,
                       TOKENS_SHARD_HEADER);
    if (le_get32(p) != TOKENS_SHARD_MAGIC)
        return err_set(err, ERR_INVALID,
                       "%s: magic: %" PRIu32 ", expected %d: llm.c's shard of tokens, or uint16 alone", path,
                       le_get32(p), TOKENS_SHARD_MAGIC);
    if (le_get32(p + 4) != TOKENS_SHARD_VERSION)
        return err_set(err, ERR_INVALID, "%s: version: %" PRIu32 ", expected %d", path, le_get32(p + 4),
                       TOKENS_SHARD_VERSION);
    uint64_t want = TOKENS_SHARD_HEADER + 2 * (uint64_t)le_get32(p + 8);
    if (want != bytes)
        return err_set(err, ERR_INVALID,
                       "%s: size: %zu bytes, expected %" PRIu64 " for the %" PRIu32 " tokens of its header",
                       path, bytes, want, le_get32(p + 8));
    *ret_count = le_get32(p + 8);
    return 0;
}

static int parse(struct file *f, struct err *err)
{
    char name[FIRST_BYTES_NAME];
    size_t first;

    f->first = f->map;
    f->width = 2;
    if (sv_ends(sv_from(f->path), ".npy")) {
        if (npy_vector(f->path, f->map, f->map_bytes, &first, &f->count, err))
            return -1;
        f->first += first;
        return 0;
    }
    if (sv_ends(sv_from(f->path), ".bin")) {
        f->count = (int64_t)f->map_bytes / 2;
        if (is_raw(f->map, f->map_bytes))
            return 0;
        f->first += TOKENS_SHARD_HEADER;
        return tokens_shard_parse(f->path, f->map, f->map_bytes, &f->count, err);
    }
    if (first_bytes_name(f->map, f->map_bytes, name) == FIRST_BYTES_STAND_IN)
        return err_set(err, ERR_INVALID, "%s: %s, expected plain text", f->path, name);
    int mark = text_mark(f->map, f->map_bytes, err);
    if (mark < 0)
        return err_wrap(err, "%s", f->path);
    f->first += mark;
    f->width = 1;
    f->count = (int64_t)f->map_bytes - mark;
    return 0;
}

static int map(struct file *f, struct err *err)
{
    /* O_NONBLOCK: refuse a FIFO instead of waiting for it. */
    cleanup_close int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st))
        return err_errno(err, ERR_FATAL, errno, "%s: cannot read", f->path);
    if (!S_ISREG(st.st_mode) || !st.st_size)
        return err_set(err, ERR_INVALID, "%s: expected a file that is not empty", f->path);
    f->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (f->map == MAP_FAILED) {
        f->map = NULL;
        return err_errno(err, ERR_FATAL, errno, "%s: cannot map", f->path);
    }
    f->map_bytes = (size_t)st.st_size;
    return 0;
}

static int add(struct tokens *t, const char *path, struct err *err)
{
    struct file *f = &t->file[t->files];

    f->path = memory_strdup(path);
    t->files++;
    if (map(f, err) || parse(f, err))
        return -1;
    f->window = t->windows;
    t->windows += f->count ? (f->count - 1) / t->time : 0;
    t->count += f->count;
    return 0;
}

static int add_all(struct tokens *t, const char *pattern, const glob_t *found, struct err *err)
{
    if (found->gl_pathc > TOKENS_FILES_MAX)
        return err_set(err, ERR_INVALID, "%.160s: %zu files, expected at most %d", pattern, found->gl_pathc,
                       TOKENS_FILES_MAX);
    t->file = memory_must(calloc(found->gl_pathc, sizeof(*t->file)));
    for (size_t i = 0; i < found->gl_pathc; i++)
        if (add(t, found->gl_pathv[i], err))
            return -1;
    if (!t->windows)
        return err_set(err, ERR_INVALID,
                       "%.160s: %" PRId64 " tokens in %zu files, expected more than %" PRId32 " in one",
                       pattern, t->count, t->files, t->time);
    return 0;
}

/* glob(3) sorts by the locale, but ranks with different locales need the same order. */
static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct tokens *tokens_open(const char *pattern, int32_t time, struct err *err)
{
    cleanup_tokens struct tokens *t = memory_must(calloc(1, sizeof(*t)));
    glob_t found = {0};

    t->time = time;
    int rc = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &found);
    if (rc == GLOB_NOSPACE) {
        err_memory(err, "%.200s: no memory", pattern);
    } else if (rc) {
        err_set(err, ERR_NOT_FOUND, "%.200s: %s", pattern,
                rc == GLOB_NOMATCH ? "no such file" : "cannot read the folder");
    } else {
        qsort(found.gl_pathv, found.gl_pathc, sizeof(*found.gl_pathv), by_bytes);
        rc = add_all(t, pattern, &found, err);
    }
    globfree(&found);
    return rc ? NULL : TAKE(t);
}

void tokens_free(struct tokens *t)
{
    for (size_t i = 0; t && i < t->files; i++) {
        if (t->file[i].map)
            munmap(t->file[i].map, t->file[i].map_bytes);
        free(t->file[i].path);
    }
    if (t)
        free(t->file);
    free(t);
}

int64_t tokens_windows(const struct tokens *t)
{
    return t->windows;
}

int32_t tokens_vocab(const struct tokens *t)
{
    for (size_t i = 0; i < t->files; i++)
        if (t->file[i].width != 1)
            return 0;
    return TOKENS_BYTES_VOCAB;
}

/* The file of a window: the last one whose first window is <= window (files without windows have the next
 * file's number). */
static const struct file *file_of(const struct tokens *t, int64_t window)
{
    size_t low = 0;
    size_t high = t->files;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (t->file[middle].window <= window)
            low = middle;
        else
            high = middle;
    }
    return &t->file[low];
}

int tokens_window(const struct tokens *t, int64_t window, int32_t vocab, float *x, int32_t *next,
                  struct err *err)
{
    const struct file *f = file_of(t, window);
    int64_t from = (window - f->window) * t->time;
    int64_t i = 0;

    for (; i <= t->time; i++) {
        const uint8_t *p = f->first + (from + i) * f->width;
        int32_t id = f->width == 1 ? p[0] : p[0] | p[1] << 8;
        if (id >= vocab)
            return err_set(err, ERR_INVALID,
                           "%s: token %" PRId64 ": %" PRId32 ", expected 0..%" PRId32 ": the model's",
                           f->path, from + i, id, vocab - 1);
        if (i < t->time)
            x[i] = (float)id;
        if (i)
            next[i - 1] = id;
    }
    return 0;
}
