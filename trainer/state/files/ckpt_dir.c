/* ckpt_dir.c - write a checkpoint into a temporary folder and rename it; remove old ones. */
#include "trainer/state/files/ckpt_dir.h"

#include "common/fsutil.h"
#include "trainer/state/files/folder.h"
#include "trainer/state/files/piece.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define TMP ".tmp-"

static void step_name(const char *before, int64_t step, const char *behind, char out[static CKPT_NAME_BYTES])
{
    snprintf(out, CKPT_NAME_BYTES, "%sstep-%0*" PRId64 "%s", before, CKPT_STEP_DIGITS, step, behind);
}

int ckpt_lock(const char *dir)
{
    cleanup_close int fd = folder_open(AT_FDCWD, dir);

    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return TAKE_FD(fd);
    return errno == EWOULDBLOCK ? -1 : 0;
}

/* Open the run's folder; create it if there is none. */
static int open_run(const char *dir, struct err *err)
{
    int fd = folder_open(AT_FDCWD, dir);
    struct stat st;

    if (fd < 0 && errno == ENOENT) {
        if (fs_mkdirs_synced(dir, err))
            return -1;
        fd = folder_open(AT_FDCWD, dir);
    }
    if (fd >= 0)
        return fd;
    const int code = errno;
    if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(err, ERR_INVALID, "%s: a link, expected the run's own folder: remove it", dir);
    return err_errno(err, ERR_FATAL, code, "%s", dir);
}

/* Open the folder for temporary ones: the attempt's mark, or the run's folder itself. */
static int open_base(const struct ckpt_writer *w, const char *mark, struct err *err)
{
    const int fd = folder_open(w->folder, mark);

    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "%s/%s", w->dir, mark);
    folder_clear(w->folder, TMP "step-"); /* left by a killed writer: nobody else writes here */
    if (mark[1])
        folder_clear(fd, "");
    return fd;
}

int ckpt_claim(const char *dir, struct attempt_mark *mark, struct err *err)
{
    cleanup_close int folder = mark->known ? open_run(dir, err) : -1;

    if (!mark->known)
        return 0;
    return folder < 0 ? -1 : attempt_mark_take(mark, folder, dir, err);
}

int ckpt_begin(struct ckpt_writer *w, const char *dir, const struct manifest *m, struct attempt_mark *mark,
               struct err *err)
{
    char base[ATTEMPT_NAME_BYTES] = ".";

    *w = (struct ckpt_writer){.dir = dir, .folder = open_run(dir, err), .base = -1, .in = -1, .manifest = *m};
    w->manifest.files = 0;
    if (w->folder < 0)
        return -1;
    if (mark && mark->known)
        attempt_mark_name(mark, base);
    if ((mark && attempt_mark_take(mark, w->folder, dir, err)) || (w->base = open_base(w, base, err)) < 0) {
        close(w->folder);
        return -1;
    }
    step_name(TMP, m->step, "", w->tmp);
    snprintf(w->path, sizeof(w->path), "%s/%s", base, w->tmp);
    w->in = mkdirat(w->base, w->tmp, 0777) ? -1 : folder_open(w->base, w->tmp);
    if (w->in >= 0)
        return 0;
    err_errno(err, ERR_FATAL, errno, "%s/%s", dir, w->path);
    ckpt_abort(w);
    return -1;
}

void ckpt_abort(struct ckpt_writer *w)
{
    if (!w->tmp[0])
        return;
    folder_remove(w->base, w->tmp, false);
    if (w->in >= 0)
        close(w->in);
    close(w->base);
    close(w->folder);
    w->tmp[0] = '\0';
}

struct counted {
    int fd;
    int64_t bytes;
    uLong crc;
};

static int write_counted(void *ctx, const void *bytes, size_t len, struct err *err)
{
    struct counted *c = ctx;

    if (piece_write(c->fd, bytes, len))
        return err_errno(err, ERR_FATAL, errno, "cannot write");
    c->bytes += (int64_t)len;
    c->crc = crc32_z(c->crc, bytes, len);
    return 0;
}

/* Write `name` to the temporary folder, and fill in its manifest entry. */
static int write_file(const struct ckpt_writer *w, const char *name,
                      int (*write)(void *ctx, const struct pt_sink *sink, struct err *err), void *ctx,
                      struct manifest_file *entry, struct err *err)
{
    cleanup_close int fd = openat(w->in, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct counted c = {.fd = fd, .crc = crc32(0, NULL, 0)};

    if (fd < 0)
        return err_errno(err, ERR_FATAL, errno, "%s/%s/%s", w->dir, w->path, name);
    if (write(ctx, &(struct pt_sink){write_counted, &c}, err))
        return err_wrap(err, "%s/%s/%s", w->dir, w->path, name);
    if (fsync(fd))
        return err_errno(err, ERR_FATAL, errno, "%s/%s/%s", w->dir, w->path, name);
    *entry = (struct manifest_file){.bytes = c.bytes, .crc = (uint32_t)c.crc};
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    return 0;
}

int ckpt_file(struct ckpt_writer *w, const char *name,
              int (*write)(void *ctx, const struct pt_sink *sink, struct err *err), void *ctx,
              struct err *err)
{
    struct manifest *m = &w->manifest;

    if (write_file(w, name, write, ctx, &m->file[m->files], err))
        return -1;
    m->files++;
    return 0;
}

/* Rename it first, so that a kill in the middle does not leave an incomplete checkpoint. */
static void remove_checkpoint(int folder, const char *name)
{
    char hidden[CKPT_NAME_BYTES];

    snprintf(hidden, sizeof(hidden), TMP "%s-gone", name);
    folder_remove(folder, hidden, false);
    if (renameat(folder, name, folder, hidden) == 0)
        folder_remove(folder, hidden, false);
}

/* Remove old checkpoints up to this step. If the run was set back, newer ones stay. */
static void prune(const struct ckpt_writer *w, int64_t keep)
{
    char mine[CKPT_NAME_BYTES];
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct err ignored;
    int64_t seen = 1;

    step_name("", w->manifest.step, "", mine);
    if (ckpt_list(w->dir, &a, &list, &ignored))
        return;
    for (size_t i = 0; i < list.len; i++)
        if (list.entry[i].step <= w->manifest.step && strcmp(list.entry[i].name, mine) != 0 && ++seen > keep)
            remove_checkpoint(w->folder, list.entry[i].name);
}

/* Rename tmp to its step's name. An existing one is damaged, or from before the run was set back: it is first
 * renamed to another valid name, so that at each moment a checkpoint of this step exists. */
static int put_in_place(const struct ckpt_writer *w, struct err *err)
{
    const int in = w->folder;
    char name[CKPT_NAME_BYTES], aside[CKPT_NAME_BYTES];

    step_name("", w->manifest.step, "", name);
    step_name("", w->manifest.step, CKPT_OLD, aside);
    if (faccessat(in, name, F_OK, 0) == 0)
        remove_checkpoint(in, aside); /* left by a writer that was killed after its rename */
    const bool old = renameat(in, name, in, aside) == 0;
    if (renameat(in, w->path, in, name)) {
        err_errno(err, ERR_FATAL, errno, "%s/%s", w->dir, name);
        if (old)
            (void)renameat(in, aside, in, name);
        return -1;
    }
    if (fs_sync_folder(in))
        return err_errno(err, ERR_TRANSIENT, errno, "%s", w->dir);
    remove_checkpoint(in, aside);
    return 0;
}

static int put_text(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct buf *text = ctx;

    return sink->write(sink->ctx, text->data, text->len, err);
}

static int finish(const struct ckpt_writer *w, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MANIFEST_BYTES);
    struct manifest_file ignored;

    if (manifest_encode(&w->manifest, &text, err) ||
        write_file(w, "manifest.json", put_text, &text, &ignored, err))
        return -1;
    if (fs_sync_folder(w->in))
        return err_errno(err, ERR_FATAL, errno, "%s/%s", w->dir, w->path);
    return put_in_place(w, err);
}

int ckpt_commit(struct ckpt_writer *w, int64_t keep, struct err *err)
{
    const int rc = finish(w, err);

    if (!rc)
        prune(w, keep);
    ckpt_abort(w); /* after the rename there is no temporary folder to remove */
    return rc;
}
