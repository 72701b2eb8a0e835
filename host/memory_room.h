/* memory_room.h - the memory that this process's container may still take before its limit.
 *
 * Units:     bytes: the limit less what is in use, without the page cache of files, which the kernel gives back. The least of all
 *            levels of the cgroup (v2 memory.max, v1 memory.limit_in_bytes); MEMORY_ROOM_ANY where there is no limit.
 */
#ifndef TK_HOST_MEMORY_ROOM_H
#define TK_HOST_MEMORY_ROOM_H

#include <stdint.h>

#define MEMORY_ROOM_ANY UINT64_MAX

uint64_t memory_room(void);

/* The same for tests: `root` is put before /sys and /proc. */
uint64_t memory_room_under(const char *root);

#endif
