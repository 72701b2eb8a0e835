/* fuzz_kubeconfig.c - a kubeconfig is read whole or refused with its name, and leaves nothing behind. */
#include "fuzz.h"

#include "common/cleanup.h"
#include "common/fsutil.h"
#include "kube/auth/config.h"

#include <string.h>
#include <unistd.h>

/* Files that it names are read: none of those that never end. */
static bool names_devices(const uint8_t *data, size_t size)
{
    return memmem(data, size, "/dev", 4) || memmem(data, size, "/proc", 5) || memmem(data, size, "/sys", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_kubeconfig.XXXXXX";
    cleanup_kube_config struct kube_config c = {0};
    struct err err = {0};

    if (size > 100000 || names_devices(data, size))
        return 0;
    int fd = mkstemp(path);
    MUST(fd >= 0 && fs_write_all(fd, data, size) == 0);
    close(fd);
    int rc = kube_config_read(&c, path, NULL, &err);
    unlink(path);
    MUST(rc == 0 || (err.kind != ERR_NONE && err.msg[0]));
    MUST(rc < 0 || (c.server && c.namespace_name && strncmp(c.server, "http", 4) == 0));
    MUST(rc == 0 || !c.server);
    return 0;
}
