/* arena.h - an arena allocator: many small allocations, freed together.
 *
 * Ownership: memory from an arena is valid until arena_release. A zeroed struct is a valid empty arena.
 * Errors:    out of memory ends the process with exit code 138 (memory.h), so that it is started again;
 *            nothing returns NULL.
 */
#ifndef TK_COMMON_ARENA_H
#define TK_COMMON_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *head; /* newest chunk */
    size_t used_bytes;        /* bytes allocated from it */
};

/* `size` zeroed bytes aligned for any type. */
void *arena_alloc(struct arena *a, size_t size);

/* `n` zeroed elements; an overflowing product aborts. */
void *arena_calloc(struct arena *a, size_t n, size_t size);

char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, n, type) ((type *)arena_calloc((a), (n), sizeof(type)))

/* Free everything; the arena is empty and usable again. */
void arena_release(struct arena *a);

#define cleanup_arena __attribute__((cleanup(arena_release)))

#endif
