/* fake_root.c - write files below a folder that stands for /, and remove it. */
#include "test.h"

#include "fake_root.h"

#include "common/fsutil.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

void fake_root_put(const char *root, const char *path, const char *text)
{
    char full[200];
    struct err err = {0};

    snprintf(full, sizeof(full), "%s%s", root, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(fs_mkdirs(full, &err), 0);
    snprintf(full, sizeof(full), "%s%s", root, path);
    assert_int_equal(fs_write_atomic(full, text, strlen(text), &err), 0);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void fake_root_remove(const char *root)
{
    assert_int_equal(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}
