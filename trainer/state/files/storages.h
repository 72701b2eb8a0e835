/* storages.h - the payloads behind tensors: checked, counted, shared ones once. Pure.
 *
 * Ownership: the list lives in the arena and borrows the tensors' data.
 * Errors:    ERR_INVALID for a tensor whose shape or data cannot be.
 */
#ifndef TK_TRAINER_STATE_FILES_STORAGES_H
#define TK_TRAINER_STATE_FILES_STORAGES_H

#include "common/arena.h"
#include "common/err.h"
#include "trainer/state/files/tensor.h"

struct storage {
    const void *data;
    enum pt_dtype dtype;
    int64_t elements;
    uint64_t bytes;
    struct storage *next;
    struct storage *same_bucket;
    int32_t number;
};

enum { STORAGES_BUCKETS = 1024 };

struct storages {
    struct arena *arena;
    struct storage *first; /* in the order of their numbers */
    struct storage *last;
    struct storage *bucket[STORAGES_BUCKETS];
    int32_t len;
};

/* The storage of a tensor, a new one or that of an earlier tensor with the same data, dtype and size. */
const struct storage *storages_of(struct storages *s, const struct pt_tensor *t, struct err *err);

#endif
