/* folder.c - one at a time. */
#include "folder.h"

#include "common/fsutil.h"
#include "test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[64];

int folder_setup(void **ctx)
{
    (void)ctx;
    snprintf(root, sizeof(root), "/tmp/test_kube_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int folder_teardown(void **ctx)
{
    (void)ctx;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *folder_root(void)
{
    return root;
}

const char *folder_path(const char *name)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

void folder_write(const char *name, const char *text)
{
    struct err err;

    assert_int_equal(fs_write_atomic(folder_path(name), text, strlen(text), &err), 0);
}
