/* storages.c - check tensors' shapes and number their storages, each address once. */
#include "trainer/state/files/storages.h"

#include <inttypes.h>

static int count_elements(const struct pt_tensor *t, int64_t *ret, struct err *err)
{
    int64_t n = 1;
    int64_t bytes;

    if (t->dims < 0 || t->dims > PT_DIMS_MAX)
        return err_set(err, ERR_INVALID, "tensor: %" PRId32 " dimensions, expected 0..%d", t->dims,
                       PT_DIMS_MAX);
    for (int32_t i = 0; i < t->dims; i++) {
        if (t->dim[i] < 0)
            return err_set(err, ERR_INVALID,
                           "tensor: dimension %" PRId32 ": %" PRId64 ", expected at least 0", i, t->dim[i]);
        if (__builtin_mul_overflow(n, t->dim[i], &n))
            return err_set(err, ERR_INVALID, "tensor: more elements than 63 bits count");
    }
    if (__builtin_mul_overflow(n, (int64_t)pt_dtype_bytes(t->dtype), &bytes))
        return err_set(err, ERR_INVALID, "tensor: more bytes than 63 bits count");
    if (n > 0 && !t->data)
        return err_set(err, ERR_INVALID, "tensor: no data for %" PRId64 " elements", n);
    *ret = n;
    return 0;
}

static struct storage **bucket_of(struct storages *s, const void *data)
{
    return &s->bucket[((uintptr_t)data >> 4) % STORAGES_BUCKETS];
}

const struct storage *storages_of(struct storages *s, const struct pt_tensor *t, struct err *err)
{
    int64_t n;
    struct storage **head = bucket_of(s, t->data);

    if (count_elements(t, &n, err) < 0)
        return NULL;
    for (const struct storage *e = *head; e; e = e->same_bucket) {
        if (n > 0 && e->data == t->data && e->dtype == t->dtype && e->elements == n)
            return e;
    }
    struct storage *e = arena_new(s->arena, struct storage);
    *e = (struct storage){
        .data = t->data,
        .dtype = t->dtype,
        .elements = n,
        .bytes = (uint64_t)n * pt_dtype_bytes(t->dtype),
        .same_bucket = *head,
        .number = s->len++,
    };
    *head = e;
    if (s->last)
        s->last->next = e;
    else
        s->first = e;
    s->last = e;
    return e;
}
