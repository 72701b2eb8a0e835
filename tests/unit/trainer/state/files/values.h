/* values.h - in C the state_dicts that tests/golden/torch/make.py saves from Python. */
#ifndef TK_TESTS_UNIT_TRAINER_STATE_FILES_VALUES_H
#define TK_TESTS_UNIT_TRAINER_STATE_FILES_VALUES_H

#include "common/arena.h"
#include "trainer/state/files/tensor.h"

/* state.pt: three tensors, as a module's state_dict. */
struct tensor_list values_state(struct arena *a);

/* Every type that is written, tensors that share a storage, one without elements. */
struct tensor_list values_all(struct arena *a);

/* So many tensors of one number, called key0, key1, ... */
struct tensor_list values_batch(struct arena *a, int n);

#endif
