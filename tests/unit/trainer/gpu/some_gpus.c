/* some_gpus.c - a plug-in that sees what the environment says: FAKE_GPUS, a number, or "broken". */
#include "trainer/gpu/plugin.h"

#include <stdlib.h>
#include <string.h>

static int facts(struct gpu_facts *ret, struct err *err)
{
    const char *text = getenv("FAKE_GPUS");

    if (!text || strcmp(text, "broken") == 0)
        return err_set(err, ERR_FATAL, "CUDA's runtime: broken");
    *ret =
        (struct gpu_facts){.devices = atoi(text), .driver = 13050, .runtime = 13050, .capability = {90, 90}};
    return 0;
}

extern const struct gpu_plugin tk_gpu_plugin;
const struct gpu_plugin tk_gpu_plugin = {.abi = GPU_PLUGIN_ABI, .facts = facts};
