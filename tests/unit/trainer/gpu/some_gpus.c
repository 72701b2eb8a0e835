/* some_gpus.c - a plug-in that reads the environment: FAKE_GPUS, a number, or "broken"; FAKE_DRIVER, the CUDA that
 * its driver serves.  An attempt to use one of its GPUs fails with its number.
 */
#include "trainer/gpu/plugin.h"

#include <stdlib.h>
#include <string.h>

static int facts(struct gpu_facts *ret, struct err *err)
{
    const char *text = getenv("FAKE_GPUS");
    const char *driver = getenv("FAKE_DRIVER");

    if (!text || strcmp(text, "broken") == 0)
        return err_set(err, ERR_FATAL, "CUDA's runtime: broken");
    *ret = (struct gpu_facts){.devices = atoi(text),
                              .driver = driver ? atoi(driver) : 13050,
                              .runtime = 13050,
                              .capability = {90, 90}};
    return 0;
}

static struct kctx *context(int device, enum precision precision, enum element element, struct err *err)
{
    (void)precision;
    (void)element;
    err_set(err, ERR_FATAL, "GPU %d was taken", device);
    return NULL;
}

extern const struct gpu_plugin tk_gpu_plugin;
const struct gpu_plugin tk_gpu_plugin = {.abi = GPU_PLUGIN_ABI, .facts = facts, .context = context};
