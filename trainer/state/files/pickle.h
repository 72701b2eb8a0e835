/* pickle.h - a state_dict as a protocol-2 pickle that names its tensors' storages. Pure.
 *
 * The bytes are those that torch.save writes for an OrderedDict of these tensors.
 *
 * Ownership: *storages lives in the arena and borrows the tensors' data.
 * Errors:    ERR_INVALID, led by the tensor's name ("conv1.weight: ..."); *out and *storages are then
 *            undefined.
 */
#ifndef TK_TRAINER_STATE_FILES_PICKLE_H
#define TK_TRAINER_STATE_FILES_PICKLE_H

#include "common/arena.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "trainer/state/files/storages.h"

/* The pickle calls the storages "0", "1", ... in the order of the list. */
int pickle_encode(const struct tensor_list *list, struct arena *a, struct buf *out, struct storages *storages,
                  struct err *err) MUST_CHECK;

#endif
