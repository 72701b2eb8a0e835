/* save.c - write a state_dict as one .pt or .safetensors file, through a temporary one. */
#include "trainer/state/save.h"

#include "common/fsutil.h"
#include "common/sv.h"
#include "trainer/state/files/piece.h"
#include "trainer/state/files/safetensors.h"
#include "trainer/state/files/torch_zip.h"
#include "trainer/state/state_dict.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_safetensors(const char *path)
{
    return sv_ends(sv_from(path), ".safetensors");
}

int save_check(const char *path, struct err *err)
{
    char folder[PATH_MAX];
    struct stat st;

    if (!sv_ends(sv_from(path), ".pt") && !is_safetensors(path))
        return err_set(err, ERR_INVALID, "\"%s\": expected a name that ends in .pt or .safetensors", path);
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "\"%s\": exists and is not a regular file", path);
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        snprintf(folder, sizeof(folder), ".");
    else
        slash[slash == folder] = '\0';
    if (access(folder, W_OK | X_OK))
        return err_errno(err, ERR_INVALID, errno, "\"%s\": cannot write in its folder", path);
    return 0;
}

static int write_file(void *ctx, const void *bytes, size_t len, struct err *err)
{
    const struct fs_atomic *file = ctx;

    return piece_write(file->fd, bytes, len) ? err_errno(err, ERR_FATAL, errno, "cannot write") : 0;
}

/* "model" for "dir/model.pt": torch.save's name of the folder inside. */
static void archive_name(const char *path, char out[static TORCH_ZIP_NAME_BYTES + 1])
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);

    snprintf(out, TORCH_ZIP_NAME_BYTES + 1, "%.*s",
             (int)(len < TORCH_ZIP_NAME_BYTES ? len : TORCH_ZIP_NAME_BYTES), base);
}

static int write_tensors(struct fs_atomic *file, const char *path, const struct tensor_list *list,
                         struct err *err)
{
    const struct pt_sink sink = {write_file, file};
    char name[TORCH_ZIP_NAME_BYTES + 1];

    if (is_safetensors(path))
        return safetensors_write(list, &sink, err);
    archive_name(path, name);
    return torch_zip_write(list, name, &sink, err);
}

int save_tensors(const char *path, const struct tensor_list *list, struct err *err)
{
    cleanup_fs_atomic struct fs_atomic file = {.fd = -1};

    if (fs_atomic_begin(&file, path, err))
        return -1;
    if (write_tensors(&file, path, list, err))
        return err_wrap(err, "%s", path);
    return fs_atomic_commit(&file, err);
}

int save_weights(const char *path, struct model *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const enum state_dict_form form = is_safetensors(path) ? STATE_DICT_SAFETENSORS : STATE_DICT_PT;
    const struct tensor_list list = state_dict_model(m->state, m->states, form, &a);

    return save_tensors(path, &list, err);
}
