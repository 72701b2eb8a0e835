/* unpickle.h - a protocol-2 pickle as a pt_value: the opcodes and globals that weights need, nothing else. Pure.
 *
 * No global is ever called: the few that are known (OrderedDict, the tensor builders, the storage classes) are built
 * here, every other one is refused by name.
 *
 * Ownership: *ret lives in the arena; tensors point into the storages' bytes.
 * Errors:    ERR_INVALID names the byte and what stands there. Time and memory are bounded by the pickle's length: what
 *            is shared by reference counts each time it is met.
 */
#ifndef TK_TRAINER_STATE_FILES_UNPICKLE_H
#define TK_TRAINER_STATE_FILES_UNPICKLE_H

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/state/files/pt_value.h"

enum {
    UNPICKLE_BYTES = 4 << 20,
    UNPICKLE_VALUES_PER_BYTE = 1, /* of the value that comes out; a reference takes two */
};

/* Where the bytes of a storage are; `key` is its name in the archive. ERR_INVALID: there is none. */
struct unpickle_source {
    int (*storage)(void *ctx, const char *key, const void **ret, size_t *ret_bytes, struct err *err);
    void *ctx;
};

int unpickle(const void *bytes, size_t len, const struct unpickle_source *source, struct arena *a,
             struct pt_value *ret, struct err *err) MUST_CHECK;

#endif
