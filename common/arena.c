/* arena.c - chunked bump allocation. */
#include "common/arena.h"
#include "common/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_CHUNK_BYTES = 4000, ARENA_ALIGN = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    size_t used;
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

static struct arena_chunk *chunk_new(size_t size)
{
    struct arena_chunk *c = memory_must(malloc(sizeof(*c) + size));
    c->next = NULL;
    c->size = size;
    c->used = 0;
    return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        abort();
    size_t need = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (!a->head || a->head->size - a->head->used < need) {
        struct arena_chunk *c = chunk_new(need > ARENA_CHUNK_BYTES ? need : ARENA_CHUNK_BYTES);
        c->next = a->head;
        a->head = c;
    }
    void *p = a->head->data + a->head->used;
    a->head->used += need;
    a->used_bytes += need;
    memset(p, 0, need);
    return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        abort();
    return arena_alloc(a, total);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *p = arena_alloc(a, len + 1);

    memcpy(p, s, len);
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        abort();
    char *p = arena_alloc(a, (size_t)len + 1);
    vsnprintf(p, (size_t)len + 1, fmt, ap);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void arena_release(struct arena *a)
{
    while (a->head) {
        struct arena_chunk *c = a->head;
        a->head = c->next;
        free(c);
    }
    a->used_bytes = 0;
}
