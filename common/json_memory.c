/* json_memory.c - make cJSON end the process when memory is exhausted. */
#include "common/json.h"
#include "common/memory.h"

#include <stdlib.h>

static void *malloc_must(size_t size)
{
    return memory_must(malloc(size));
}

void json_memory_must(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = malloc_must, .free_fn = free});
}
