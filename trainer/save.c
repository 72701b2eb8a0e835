/* save.c - rows of state into a state_dict. */
#include "trainer/save.h"

#include "trainer/checkpoint/export.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int save_check(const char *path, struct err *err)
{
    char folder[PATH_MAX];
    struct stat st;
    size_t len = strlen(path);

    if (len < 4 || strcmp(path + len - 3, ".pt") != 0)
        return err_set(err, ERR_INVALID, "\"%s\": expected a name that ends in .pt", path);
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "\"%s\": exists and is no regular file", path);
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
    int rows;
    const struct state_row *row = model_state(m, &rows);
    cleanup_free struct pt_item *items = calloc((size_t)rows, sizeof(*items));

    if (!items)
        return err_set(err, ERR_FATAL, "no memory for %d tensors", rows);
    for (int i = 0; i < rows; i++) {
        struct pt_tensor t = {
            .data = row[i].data, .dtype = row[i].type == STATE_I64 ? PT_I64 : PT_F32, .dims = row[i].dims};
        for (int d = 0; d < row[i].dims; d++)
            t.dim[d] = row[i].dim[d];
        items[i] = (struct pt_item){.key = pt_str(row[i].name), .value = pt_tensor(t)};
    }
    struct pt_value dict = pt_dict(PT_ORDERED_DICT, items, (size_t)rows);
    return export_pt(path, &dict, err);
}
