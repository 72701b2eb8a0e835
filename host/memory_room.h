/* memory_room.h - the memory that this process's container may still use before its limit.
 *
 * Units:     bytes: the limit less the usage; the page cache of files does not count, since the kernel can
 *            free it. The least value over all levels of the cgroup (v2 memory.max, v1
 *            memory.limit_in_bytes). MEMORY_ROOM_ANY: no limit.
 */
#ifndef TK_HOST_MEMORY_ROOM_H
#define TK_HOST_MEMORY_ROOM_H

#include <stdint.h>

#define MEMORY_ROOM_ANY UINT64_MAX

uint64_t memory_room(void);

/* The same for tests: `root` is put before /sys and /proc. */
uint64_t memory_room_under(const char *root);

#endif
