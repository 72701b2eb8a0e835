/* heapsize.h - what a block of the heap really takes: its usable size and the allocator's word before it.
 *
 * Units:  bytes; 0 for NULL. An estimate where the allocator does not tell: exact for glibc, close for musl.
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
