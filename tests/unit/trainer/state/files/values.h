/* values.h - in C the values that tests/golden/torch/make.py saves from Python. */
#ifndef TK_TESTS_UNIT_TRAINER_STATE_FILES_VALUES_H
#define TK_TESTS_UNIT_TRAINER_STATE_FILES_VALUES_H

#include "common/arena.h"
#include "trainer/state/files/pt_value.h"

/* state.pt: an ordered dict of three tensors, as a module's state_dict. */
struct pt_value values_state(struct arena *a);

/* values.pt: every type, nested. */
struct pt_value values_all(struct arena *a);

/* Dicts, ordered dicts and lists around the pickler's batch size. */
struct pt_value values_batches(struct arena *a);

#endif
