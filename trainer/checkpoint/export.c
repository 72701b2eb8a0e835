/* export.c - the encoder behind a buffered temporary file. */
#include "trainer/checkpoint/export.h"

#include "common/fsutil.h"
#include "trainer/checkpoint/torch_zip.h"

#include <errno.h>
#include <string.h>

static int write_file(void *ctx, const void *bytes, size_t len, struct err *err)
{
    if (fwrite(bytes, 1, len, ctx) < len)
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

static int write_archive(int fd, const char *path, const struct pt_value *root, struct err *err)
{
    char name[TORCH_ZIP_NAME_BYTES + 1];
    int own = dup(fd);
    cleanup_fclose FILE *f = own < 0 ? NULL : fdopen(own, "wb");

    if (!f) {
        int code = errno;
        if (own >= 0)
            close(own);
        return err_errno(err, ERR_FATAL, code, "cannot write");
    }
    archive_name(path, name);
    if (torch_zip_write(root, name, &(struct pt_sink){write_file, f}, err) < 0)
        return -1;
    return fflush(f) == 0 ? 0 : err_errno(err, ERR_FATAL, errno, "cannot write");
}

int export_pt(const char *path, const struct pt_value *root, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic file = {.fd = -1};

    if (fs_atomic_begin(&file, path, err) < 0)
        return -1;
    if (write_archive(file.fd, path, root, err) < 0)
        return err_wrap(err, "%s", path);
    return fs_atomic_commit(&file, err);
}
