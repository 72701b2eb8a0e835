/* folder.c - make a test's folder, and remove it with all that is in it. */
#include "folder.h"
#include "common/fsutil.h"
#include "test.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

static char made[] = "/tmp/test-launcher-XXXXXX";

int folder_begin(void **state)
{
    (void)state;
    memset(made + sizeof(made) - 7, 'X', 6);
    return mkdtemp(made) ? chdir(made) : -1;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

int folder_end(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : nftw(made, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void folder_put(const char *path, const char *text, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *folder = slash ? strndup(path, (size_t)(slash - path)) : NULL;
    struct err err;

    assert_true(!folder || fs_mkdirs(folder, &err) == 0);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, mode) == 0);
}
