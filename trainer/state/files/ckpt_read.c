/* ckpt_read.c - list a folder of checkpoints and open their files. */
#include "trainer/state/files/ckpt_dir.h"

#include "common/fsutil.h"
#include "host/rank_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int ckpt_path(char out[static PATH_MAX], const char *dir, const char *name, struct err *err)
{
    if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        return err_errno(err, ERR_INVALID, ENAMETOOLONG, "%.80s", dir);
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct ckpt_entry *)a)->step;
    int64_t y = ((const struct ckpt_entry *)b)->step;

    return (x < y) - (x > y);
}

/* The number after "step-"; CKPT_RUN: not a checkpoint's name. Older versions, with several runs in one
 * folder, appended "-" and eight hexadecimal digits. */
static int64_t step_of(const char *name)
{
    int64_t step = 0;

    if (strncmp(name, "step-", 5) != 0)
        return CKPT_RUN;
    const char *digits = name + 5;
    size_t n = strspn(digits, "0123456789");
    const char *behind = digits + n;
    const bool plain = !*behind || strcmp(behind, CKPT_OLD) == 0;
    const bool older = strlen(behind) == 9 && *behind == '-' && strspn(behind + 1, "0123456789abcdef") == 8;
    if (n < CKPT_STEP_DIGITS || n > 16 || !(plain || older))
        return CKPT_RUN;
    for (size_t i = 0; i < n; i++)
        step = step * 10 + (digits[i] - '0');
    return step;
}

/* Whether it may be a run's folder. */
static bool may_be_run(const struct dirent *e)
{
    return e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN);
}

int ckpt_list(const char *path, struct arena *a, struct ckpt_list *ret, struct err *err)
{
    cleanup_closedir DIR *dir = opendir(path);
    size_t n = 0, cap = 0;

    *ret = (struct ckpt_list){0};
    if (!dir)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FATAL, errno, "%s", path);
    while (n < CKPT_LIST_MAX) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e && errno) { /* without the rest, a run would begin earlier */
            *ret = (struct ckpt_list){0};
            return err_errno(err, ERR_TRANSIENT, errno, "%s", path);
        }
        if (!e)
            break;
        const int64_t step = step_of(e->d_name);
        if (step < 0 && !may_be_run(e))
            continue;
        if (n == cap) {
            struct ckpt_entry *old = ret->entry;
            cap = cap ? 2 * cap : 16;
            ret->entry = arena_array(a, cap, struct ckpt_entry);
            if (old)
                memcpy(ret->entry, old, n * sizeof(*old));
        }
        ret->entry[n++] = (struct ckpt_entry){arena_strdup(a, e->d_name), step};
        ret->len += step >= 0;
    }
    ret->runs = n - ret->len;
    if (n)
        qsort(ret->entry, n, sizeof(*ret->entry), newest_first);
    return 0;
}

int ckpt_manifest(const char *path, struct manifest *ret, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MANIFEST_BYTES);
    char file[PATH_MAX];

    if (ckpt_path(file, path, "manifest.json", err) || fs_read_regular(file, &text, err))
        return -1;
    return manifest_decode(buf_str(&text), text.len, ret, err) ? err_wrap(err, "%s", file) : 0;
}

int ckpt_read(const char *path, const struct manifest *m, const char *name, struct buf *out, struct err *err)
{
    const struct manifest_file *f = manifest_find(m, name);
    char file[PATH_MAX];

    if (!f)
        return err_set(err, ERR_INVALID, "%s/manifest.json: files: no %s", path, name);
    if (ckpt_path(file, path, name, err) || fs_read_pieces(file, out, rank_state_alive, err))
        return -1;
    if ((int64_t)out->len != f->bytes)
        return err_set(err, ERR_INVALID, "%s: %zu bytes, but the manifest says %" PRId64, file, out->len,
                       f->bytes);
    if (crc32_z(0, (const Bytef *)out->data, out->len) != f->crc)
        return err_set(err, ERR_INVALID, "%s: its checksum is not the manifest's", file);
    return 0;
}
