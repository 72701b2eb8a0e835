/* pickle.h - encode a state_dict as a protocol-2 pickle that refers to its tensors' storages. torch_zip.c
 * calls it. Pure.
 *
 * The bytes are those that torch.save writes for an OrderedDict of these tensors.
 *
 * Ownership: the storages are in the arena and borrow the tensors' data.
 * Errors:    ERR_INVALID: the message begins with the tensor's name ("conv1.weight: ..."), or *out exceeds
 *            its limit; *out and *ret are then undefined.
 */
#ifndef TK_TRAINER_STATE_FILES_PICKLE_H
#define TK_TRAINER_STATE_FILES_PICKLE_H

#include "common/arena.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "trainer/state/files/tensor.h"

/* The elements of a tensor, or of several that have the same data, type and size. */
struct storage {
    const void *data;
    enum pt_dtype dtype;
    int64_t elements;
    uint64_t bytes;
};

struct storages {
    struct storage *of;
    int32_t len;
};

/* The pickle names the storages "0", "1", ... in the order of *ret. */
int pickle_encode(const struct tensor_list *list, struct arena *a, struct buf *out, struct storages *ret,
                  struct err *err) MUST_CHECK;

#endif
