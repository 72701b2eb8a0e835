/* export.c - write one .pt or .safetensors file through a temporary one. */
#include "trainer/state/files/export.h"

#include "common/fsutil.h"
#include "trainer/state/files/piece.h"
#include "trainer/state/files/torch_zip.h"

#include <errno.h>
#include <string.h>

static int write_file(void *ctx, const void *bytes, size_t len, struct err *err)
{
    if (piece_write(ctx, bytes, len))
        return err_errno(err, ERR_FATAL, errno, "cannot write");
    return 0;
}

/* "model" of "dir/model.pt": what torch.save names the folder inside. */
static void archive_name(const char *path, char out[static TORCH_ZIP_NAME_BYTES + 1])
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);

    snprintf(out, TORCH_ZIP_NAME_BYTES + 1, "%.*s",
             (int)(len < TORCH_ZIP_NAME_BYTES ? len : TORCH_ZIP_NAME_BYTES), len ? base : "archive");
}

static int write_content(int fd, int (*put)(void *ctx, const struct pt_sink *sink, struct err *err),
                         void *ctx, struct err *err)
{
    int own = dup(fd);
    cleanup_fclose FILE *f = own < 0 ? NULL : fdopen(own, "wb");
    struct pt_sink sink = {write_file, f};

    if (!f) {
        int code = errno;
        if (own >= 0)
            close(own);
        return err_errno(err, ERR_FATAL, code, "cannot write");
    }
    if (put(ctx, &sink, err))
        return -1;
    return fflush(f) == 0 ? 0 : err_errno(err, ERR_FATAL, errno, "cannot write");
}

static int export_file(const char *path, int (*put)(void *ctx, const struct pt_sink *sink, struct err *err),
                       void *ctx, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic file = {.fd = -1};

    if (fs_atomic_begin(&file, path, err) < 0)
        return -1;
    if (write_content(file.fd, put, ctx, err) < 0)
        return err_wrap(err, "%s", path);
    return fs_atomic_commit(&file, err);
}

struct archive {
    const struct tensor_list *list;
    char name[TORCH_ZIP_NAME_BYTES + 1];
};

static int put_pt(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct archive *a = ctx;

    return torch_zip_write(a->list, a->name, sink, err);
}

static int put_safetensors(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct tensor_list *const *list = ctx;

    return safetensors_write(*list, sink, err);
}

int export_pt(const char *path, const struct tensor_list *list, struct err *err)
{
    struct archive a = {.list = list};

    archive_name(path, a.name);
    return export_file(path, put_pt, &a, err);
}

int export_safetensors(const char *path, const struct tensor_list *list, struct err *err)
{
    return export_file(path, put_safetensors, &list, err);
}
