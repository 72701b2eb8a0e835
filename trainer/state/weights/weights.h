/* weights.h - read weights from a .safetensors file of any program. init_from.c calls it.
 *
 * Ownership: the list points into the file, which is mapped until weights_close. If the file is truncated
 *            meanwhile, SIGBUS ends the process.
 * Errors:    ERR_NOT_FOUND, ERR_INVALID ("<path>: ..."), ERR_FATAL (cannot read).
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_WEIGHTS_H
#define TK_TRAINER_STATE_WEIGHTS_WEIGHTS_H

#include "trainer/state/files/safetensors.h"

enum { WEIGHTS_TENSORS_MAX = 1 << 14 }; /* a GPT-2 of the most blocks, 125, has 1505 */

struct weights {
    struct arena arena;
    void *map;
    size_t bytes;
    struct tensor_list list;
};

int weights_open(struct weights *w, const char *path, struct err *err) MUST_CHECK;
void weights_close(struct weights *w);
#define cleanup_weights __attribute__((cleanup(weights_close)))

/* ERR_INVALID if `path` is a .pt file: the error has the Python line that converts it to .safetensors. */
int weights_refuse_pt(const char *path, struct err *err) MUST_CHECK;

#endif
