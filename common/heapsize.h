/* heapsize.h - the heap memory of a block: its usable size plus the allocator's header of one word.
 *
 * Units:     bytes; 0 for NULL. Exact for glibc, an estimate for other allocators such as musl's.
 */
#ifndef TK_COMMON_HEAPSIZE_H
#define TK_COMMON_HEAPSIZE_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t heapsize(const void *block)
{
    return block ? malloc_usable_size((void *)(uintptr_t)block) + sizeof(size_t) : 0;
}

#endif
