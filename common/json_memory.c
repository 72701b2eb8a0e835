/* json_memory.c - trees that get no memory. */
#include "common/json.h"

#include <stdlib.h>

static void *malloc_or_abort(size_t size)
{
    void *p = malloc(size);

    if (!p)
        abort();
    return p;
}

void json_abort_without_memory(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = malloc_or_abort, .free_fn = free});
}
