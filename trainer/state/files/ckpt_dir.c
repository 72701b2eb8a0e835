/* ckpt_dir.c - write a checkpoint into a temporary folder and rename it; remove old ones. */
#include "trainer/state/files/ckpt_dir.h"

#include "common/fsutil.h"
#include "trainer/state/files/piece.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char TMP[] = ".tmp-";
enum { SINK_BYTES = 1 << 16 };

static int sync_folder(const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) ? err_errno(err, ERR_FATAL, errno, "%s", path) : 0;
}

/* A folder of ours with the files in it; folders inside, which are not ours, stop it. Whoever may write beside it may have put
 * a link in its place: that goes, and what it leads to stays. */
static void remove_folder(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        fd = -1; /* the stream's */
    else
        (void)unlink(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)rmdir(path);
}

/* What a killed writer left: nobody else writes here. */
static void remove_leftovers(const char *path)
{
    char leftover[PATH_MAX];
    struct err ignored;
    cleanup_closedir DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strncmp(e->d_name, ".tmp-step-", 10) == 0 && !ckpt_path(leftover, path, e->d_name, &ignored))
            remove_folder(leftover);
}

static void step_name(int64_t step, const char *behind, char out[static CKPT_NAME_BYTES])
{
    snprintf(out, CKPT_NAME_BYTES, "step-%0*" PRId64 "%s", CKPT_STEP_DIGITS, step, behind);
}

/* The run's folder. */
static int make_folder(const char *dir, struct err *err)
{
    struct stat st;

    if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(err, ERR_INVALID, "%s: a link, expected the run's own folder: remove it", dir);
    return fs_mkdirs_synced(dir, err);
}

int ckpt_begin(struct ckpt_writer *w, const char *dir, const struct manifest *m, struct err *err)
{
    char name[CKPT_NAME_BYTES];
    char tmp[CKPT_NAME_BYTES + sizeof(TMP)];

    *w = (struct ckpt_writer){.manifest = *m};
    w->manifest.files = 0;
    step_name(m->step, "", name);
    snprintf(tmp, sizeof(tmp), "%s%s", TMP, name);
    if (snprintf(w->dir, sizeof(w->dir), "%s", dir) >= (int)sizeof(w->dir))
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%.80s", dir);
    if (make_folder(dir, err))
        return -1;
    remove_leftovers(dir);
    if (ckpt_path(w->tmp, dir, tmp, err) || mkdir(w->tmp, 0777)) {
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

    if (piece_write(c->f, bytes, len))
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
    if (ckpt_path(path, w->tmp, name, err))
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

    snprintf(hidden, sizeof(hidden), "%s%s-gone", TMP, name);
    if (ckpt_path(path, dir, name, &ignored) || ckpt_path(tmp, dir, hidden, &ignored))
        return;
    remove_folder(tmp);
    if (rename(path, tmp) == 0)
        remove_folder(tmp);
}

/* Of those up to this step, which is in place: a run that was set back leaves newer ones alone. */
static void prune(const char *dir, int64_t step, int64_t keep)
{
    char mine[CKPT_NAME_BYTES];
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err ignored;
    int64_t seen = 1;

    step_name(step, "", mine);
    if (ckpt_list(dir, &a, &list, &ignored))
        return;
    for (size_t i = 0; i < list.len; i++)
        if (list.entry[i].step <= step && strcmp(list.entry[i].name, mine) != 0 && ++seen > keep)
            remove_checkpoint(dir, list.entry[i].name);
}

/* Rename tmp to its step's name. One of that name is of before the run was set back, or damaged: it steps aside, under a name that is
 * a checkpoint's too, until the new one has its own, so that at each moment one of them is there. */
static int put_in_place(struct ckpt_writer *w, struct err *err)
{
    char name[CKPT_NAME_BYTES], old_name[CKPT_NAME_BYTES];
    char final[PATH_MAX], aside[PATH_MAX];

    step_name(w->manifest.step, "", name);
    step_name(w->manifest.step, CKPT_OLD, old_name);
    if (ckpt_path(final, w->dir, name, err) || ckpt_path(aside, w->dir, old_name, err))
        return -1;
    if (access(final, F_OK) == 0)
        remove_checkpoint(w->dir, old_name); /* what a writer that was killed behind its rename has left */
    const bool old = rename(final, aside) == 0;
    if (rename(w->tmp, final)) {
        err_errno(err, ERR_FATAL, errno, "%s", final);
        if (old)
            (void)rename(aside, final);
        return -1;
    }
    w->tmp[0] = '\0';
    if (sync_folder(w->dir, err)) {
        err->kind = ERR_TRANSIENT;
        return -1;
    }
    remove_checkpoint(w->dir, old_name);
    return 0;
}

int ckpt_commit(struct ckpt_writer *w, int64_t keep, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MANIFEST_BYTES);
    char path[PATH_MAX];

    if (manifest_encode(&w->manifest, &text, err) || ckpt_path(path, w->tmp, "manifest.json", err) ||
        fs_write_atomic(path, text.data, text.len, err) || sync_folder(w->tmp, err) || put_in_place(w, err))
        return -1;
    prune(w->dir, w->manifest.step, keep);
    return 0;
}
