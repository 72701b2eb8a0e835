/* api.c - load libnccl.so.2 with dlopen and look up the functions that the collectives use. */
#include "collectives/nccl/api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Copy the object pointer into a function pointer: ISO C has no cast for it, POSIX guarantees the same
 * representation. */
static bool find(void *handle, const char *name, void *member)
{
    void *symbol = dlsym(handle, name);

    memcpy(member, &symbol, sizeof(symbol));
    return symbol;
}

static const char *missing(void *handle, struct nccl_api *api)
{
#define X(member, function)                                                                                  \
    if (!find(handle, #function, &api->member))                                                              \
        return #function;
    NCCL_API_NEEDED(X)
#undef X
#define X(member, function) (void)find(handle, #function, &api->member);
    NCCL_API_WANTED(X)
#undef X
    return NULL;
}

int nccl_api_load(struct nccl_api *api, const char *library, struct err *err)
{
    const char *name = library ? library : NCCL_API_LIBRARY;
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    *api = (struct nccl_api){0};
    if (!handle)
        return err_set(err, ERR_INVALID, "--backend nccl needs NCCL %d or newer: %s", NCCL_MAJOR, dlerror());
    const char *name_of_missing = missing(handle, api);
    ncclResult_t r = name_of_missing ? ncclSuccess : api->get_version(&api->version);
    if (name_of_missing || r != ncclSuccess)
        return err_set(err, ERR_INVALID, "%.120s: %s %s: expected NCCL 2.19 or newer", name,
                       name_of_missing ? "no" : "ncclGetVersion fails:",
                       name_of_missing ? name_of_missing : api->get_error_string(r));
    if (api->version < NCCL_API_OLDEST)
        return err_set(err, ERR_INVALID, "%.120s: NCCL %d.%d: expected 2.19 or newer", name,
                       api->version / 10000, api->version / 100 % 100);
    return 0;
}
