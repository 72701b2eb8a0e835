/* save.c - write a state_dict as .pt or .safetensors, by the ending of the file's name. */
#include "trainer/state/save.h"
#include "common/sv.h"

#include "trainer/state/files/export.h"
#include "trainer/state/state_dict.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SAFETENSORS[] = ".safetensors";

int save_check(const char *path, struct err *err)
{
    char folder[PATH_MAX];
    struct stat st;

    if (!sv_ends(sv_from(path), ".pt") && !sv_ends(sv_from(path), SAFETENSORS))
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

int save_weights(const char *path, struct model *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    int rows;
    const struct state_row *row = model_state(m, &rows);

    if (sv_ends(sv_from(path), SAFETENSORS)) {
        const struct tensor_list list = state_dict_safetensors(row, rows, &a);
        return export_safetensors(path, &list, err);
    }
    const struct tensor_list list = state_dict_pt(row, rows, &a);
    return export_pt(path, &list, err);
}
