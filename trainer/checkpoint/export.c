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

/* One of the two; `list` when root is NULL. */
struct content {
    const struct pt_value *root;
    const struct tensor_list *list;
};

static int write_content(int fd, const char *path, const struct content *what, struct err *err)
{
    char name[TORCH_ZIP_NAME_BYTES + 1];
    int own = dup(fd);
    cleanup_fclose FILE *f = own < 0 ? NULL : fdopen(own, "wb");
    struct pt_sink sink = {write_file, f};

    if (!f) {
        int code = errno;
        if (own >= 0)
            close(own);
        return err_errno(err, ERR_FATAL, code, "cannot write");
    }
    archive_name(path, name);
    if (what->root ? torch_zip_write(what->root, name, &sink, err)
                   : safetensors_write(what->list, &sink, err))
        return -1;
    return fflush(f) == 0 ? 0 : err_errno(err, ERR_FATAL, errno, "cannot write");
}

static int export(const char *path, const struct content *what, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic file = {.fd = -1};

    if (fs_atomic_begin(&file, path, err) < 0)
        return -1;
    if (write_content(file.fd, path, what, err) < 0)
        return err_wrap(err, "%s", path);
    return fs_atomic_commit(&file, err);
}

int export_pt(const char *path, const struct pt_value *root, struct err *err)
{
    return export(path, &(struct content){.root = root}, err);
}

int export_safetensors(const char *path, const struct tensor_list *list, struct err *err)
{
    return export(path, &(struct content){.list = list}, err);
}
