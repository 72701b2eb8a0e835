/* plugin.c - open a shared object by name and check its ABI number. */
#include "common/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* False when it does not exist or the path is too long. */
static bool find_in(const char *dir, const char *file, char path[static PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", dir, file) < PATH_MAX && access(path, R_OK) == 0;
}

static int find_file(const struct plugin *p, const char *dir, char path[static PATH_MAX], struct err *err)
{
    char self[PATH_MAX];
    char lib[PATH_MAX + 32];

    if (dir)
        return find_in(dir, p->file, path)
                   ? 0
                   : err_set(err, ERR_NOT_FOUND, "%.160s: no %s there", path, p->what);
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return err_errno(err, ERR_FATAL, errno, "/proc/self/exe");
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(lib, sizeof(lib), "%s/../lib/torchkeeper", self);
    if (find_in(self, p->file, path) || find_in(lib, p->file, path))
        return 0;
    return err_set(err, ERR_NOT_FOUND, "this build has no %s (%.120s/%s is not there)", p->what, self,
                   p->file);
}

const void *plugin_load(const struct plugin *p, const char *dir, struct err *err)
{
    char path[PATH_MAX];
    uint32_t abi;

    if (find_file(p, dir, path, err))
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | (p->global ? RTLD_GLOBAL : RTLD_LOCAL));
    const void *table = handle ? dlsym(handle, p->symbol) : NULL;
    if (!table) {
        const char *why = dlerror();
        err_set(err, ERR_INVALID, "the %s cannot be loaded: %s", p->what, why ? why : path);
        return NULL;
    }
    memcpy(&abi, table, sizeof(abi));
    if (abi != p->abi) {
        err_set(err, ERR_INVALID, "%.160s: of another build (interface %u, expected %u)", path, abi, p->abi);
        return NULL;
    }
    return table;
}
