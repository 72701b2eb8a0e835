/* ckpt_dir.c - writing beside, renaming, removing, reading back. */
#include "trainer/checkpoint/ckpt_dir.h"

#include "common/fsutil.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static const char TMP[] = ".tmp-";
enum { STEP_DIGITS = 10, SINK_BYTES = 1 << 16 };

static int join(char out[static PATH_MAX], const char *dir, const char *name, struct err *err)
{
    if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%s", dir);
    return 0;
}

static int sync_folder(const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) ? err_errno(err, ERR_FATAL, errno, "%s", path) : 0;
}

/* A folder of ours with the files in it; folders inside, which are not ours, stop it. */
static void remove_folder(const char *path)
{
    cleanup_closedir DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)rmdir(path);
}

/* What a writer left that was killed. */
static void remove_leftovers(const char *path)
{
    char leftover[PATH_MAX];
    struct err ignored;
    cleanup_closedir DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strncmp(e->d_name, ".tmp-step-", 10) == 0 && !join(leftover, path, e->d_name, &ignored))
            remove_folder(leftover);
}

static void step_name(int64_t step, char out[static CKPT_NAME_BYTES])
{
    snprintf(out, CKPT_NAME_BYTES, "step-%0*" PRId64, STEP_DIGITS, step);
}

int ckpt_begin(struct ckpt_writer *w, const char *dir, const struct manifest *m, struct err *err)
{
    char name[CKPT_NAME_BYTES];
    char tmp[CKPT_NAME_BYTES + sizeof(TMP)];

    *w = (struct ckpt_writer){.manifest = *m};
    w->manifest.files = 0;
    step_name(m->step, name);
    snprintf(tmp, sizeof(tmp), "%s%s", TMP, name);
    if (snprintf(w->dir, sizeof(w->dir), "%s", dir) >= (int)sizeof(w->dir))
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%.80s", dir);
    if (fs_mkdirs(dir, err))
        return -1;
    remove_leftovers(dir);
    if (join(w->tmp, dir, tmp, err) || mkdir(w->tmp, 0777)) {
        int code = errno;
        err_errno(err, ERR_FATAL, code, "%s/%s", dir, tmp);
        w->tmp[0] = '\0';
        return -1;
    }
    return 0;
}

void ckpt_abort(struct ckpt_writer *w)
{
    if (w->tmp[0])
        remove_folder(w->tmp);
    w->tmp[0] = '\0';
}

struct counted {
    FILE *f;
    int64_t bytes;
    uLong crc;
};

static int write_counted(void *ctx, const void *bytes, size_t len, struct err *err)
{
    struct counted *c = ctx;

    if (fwrite(bytes, 1, len, c->f) < len)
        return err_errno(err, ERR_FATAL, errno, "cannot write");
    const Bytef *p = bytes;
    c->bytes += (int64_t)len;
    for (; len; p += SINK_BYTES) {
        uInt n = len < SINK_BYTES ? (uInt)len : SINK_BYTES;
        c->crc = crc32(c->crc, p, n);
        len -= n;
    }
    return 0;
}

int ckpt_file(struct ckpt_writer *w, const char *name,
              int (*write)(void *ctx, const struct pt_sink *sink, struct err *err), void *ctx,
              struct err *err)
{
    char path[PATH_MAX];
    struct manifest *m = &w->manifest;

    if (m->files == MANIFEST_FILES_MAX || strlen(name) >= MANIFEST_NAME_BYTES)
        return err_set(err, ERR_INVALID, "%.60s: one file too many, or a name too long", name);
    if (join(path, w->tmp, name, err))
        return -1;
    cleanup_fclose FILE *f = fopen(path, "wbxe");
    if (!f)
        return err_errno(err, ERR_FATAL, errno, "%s", path);
    struct counted c = {.f = f, .crc = crc32(0, NULL, 0)};
    if (write(ctx, &(struct pt_sink){write_counted, &c}, err))
        return err_wrap(err, "%s", path);
    if (fflush(f) || fsync(fileno(f)))
        return err_errno(err, ERR_FATAL, errno, "%s", path);
    struct manifest_file *entry = &m->file[m->files++];
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->bytes = c.bytes;
    entry->crc = (uint32_t)c.crc;
    return 0;
}

/* Out of sight first, so that a kill in the middle leaves no half of it under its name. */
static void remove_checkpoint(const char *dir, const char *name)
{
    char path[PATH_MAX];
    char tmp[PATH_MAX];
    char hidden[2 * CKPT_NAME_BYTES];
    struct err ignored;

    snprintf(hidden, sizeof(hidden), "%s%s-old", TMP, name);
    if (join(path, dir, name, &ignored) || join(tmp, dir, hidden, &ignored))
        return;
    remove_folder(tmp);
    if (rename(path, tmp) == 0)
        remove_folder(tmp);
}

static bool same_run(const struct manifest *a, const struct manifest *b)
{
    return a->config == b->config && strcmp(a->run_id, b->run_id) == 0;
}

/* Other runs' checkpoints are theirs to remove; one whose manifest cannot be read is nobody's. */
static void prune(const char *dir, const struct manifest *mine, int64_t keep)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err ignored;
    int64_t seen = 0;

    if (ckpt_list(dir, &a, &list, &ignored))
        return;
    for (size_t i = 0; i < list.len; i++) {
        char path[PATH_MAX];
        struct manifest m;
        if (join(path, dir, list.entry[i].name, &ignored) || ckpt_manifest(path, &m, &ignored) ||
            !same_run(&m, mine) || m.step > mine->step)
            continue;
        if (++seen > keep)
            remove_checkpoint(dir, list.entry[i].name);
    }
}

int ckpt_commit(struct ckpt_writer *w, int64_t keep, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MANIFEST_BYTES);
    char name[CKPT_NAME_BYTES];
    char path[PATH_MAX];
    char final[PATH_MAX];

    step_name(w->manifest.step, name);
    if (manifest_encode(&w->manifest, &text, err) || join(path, w->tmp, "manifest.json", err) ||
        fs_write_atomic(path, text.data, text.len, err) || sync_folder(w->tmp, err) ||
        join(final, w->dir, name, err))
        return -1;
    /* One of this name is of another run, or of this one before it was set back. */
    remove_checkpoint(w->dir, name);
    if (rename(w->tmp, final))
        return err_errno(err, ERR_FATAL, errno, "%s", final);
    w->tmp[0] = '\0';
    if (sync_folder(w->dir, err))
        return -1;
    prune(w->dir, &w->manifest, keep);
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct ckpt_entry *)a)->step;
    int64_t y = ((const struct ckpt_entry *)b)->step;

    return (x < y) - (x > y);
}

/* The number behind "step-"; -1 when the name is no checkpoint's. */
static int64_t step_of(const char *name)
{
    int64_t step = 0;

    if (strncmp(name, "step-", 5) != 0 || strlen(name) < 5 + STEP_DIGITS || strlen(name) > 5 + 16 ||
        strspn(name + 5, "0123456789") != strlen(name + 5))
        return -1;
    for (const char *p = name + 5; *p; p++)
        step = step * 10 + (*p - '0');
    return step;
}

int ckpt_list(const char *path, struct arena *a, struct ckpt_list *ret, struct err *err)
{
    cleanup_closedir DIR *dir = opendir(path);
    size_t cap = 0;

    *ret = (struct ckpt_list){0};
    if (!dir)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%s", path);
    for (struct dirent *e; ret->len < CKPT_LIST_MAX && (e = readdir(dir));) {
        int64_t step = step_of(e->d_name);
        if (step < 0)
            continue;
        if (ret->len == cap) {
            struct ckpt_entry *old = ret->entry;
            cap = cap ? 2 * cap : 16;
            ret->entry = arena_array(a, cap, struct ckpt_entry);
            if (old)
                memcpy(ret->entry, old, ret->len * sizeof(*old));
        }
        struct ckpt_entry *entry = &ret->entry[ret->len++];
        snprintf(entry->name, sizeof(entry->name), "%s", e->d_name);
        entry->step = step;
    }
    if (ret->len)
        qsort(ret->entry, ret->len, sizeof(*ret->entry), newest_first);
    return 0;
}

int ckpt_manifest(const char *path, struct manifest *ret, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MANIFEST_BYTES);
    char file[PATH_MAX];

    if (join(file, path, "manifest.json", err) || fs_read(file, &text, err))
        return -1;
    return manifest_decode(buf_str(&text), text.len, ret, err) ? err_wrap(err, "%s", file) : 0;
}

static uint32_t crc_of(const char *p, size_t len)
{
    uLong crc = crc32(0, NULL, 0);

    for (size_t n; len; p += n, len -= n) {
        n = len < INT32_MAX ? len : INT32_MAX;
        crc = crc32(crc, (const Bytef *)p, (uInt)n);
    }
    return (uint32_t)crc;
}

int ckpt_read(const char *path, const struct manifest *m, const char *name, struct buf *out, struct err *err)
{
    const struct manifest_file *f = manifest_find(m, name);
    char file[PATH_MAX];

    if (!f)
        return err_set(err, ERR_INVALID, "%s/manifest.json: files: no %s", path, name);
    if (join(file, path, name, err) || fs_read(file, out, err))
        return -1;
    if ((int64_t)out->len != f->bytes)
        return err_set(err, ERR_INVALID, "%s: %zu bytes, but the manifest says %" PRId64, file, out->len,
                       f->bytes);
    if (crc_of(out->data, out->len) != f->crc)
        return err_set(err, ERR_INVALID, "%s: its checksum is not the manifest's", file);
    return 0;
}
