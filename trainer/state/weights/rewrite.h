/* rewrite.h - convert the weights of a GPT-2 to another program's names, orientation and element type.
 *
 * Ownership: what comes out lives in the arena or points where the input does.
 * Errors:    ERR_INVALID naming the tensor.
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_REWRITE_H
#define TK_TRAINER_STATE_WEIGHTS_REWRITE_H

#include "trainer/state/files/safetensors.h"

enum rewrite_layout {
    REWRITE_NANOGPT,     /* transformer.*, matrices (out, in), and lm_head.weight, which is wte's */
    REWRITE_HUGGINGFACE, /* GPT2LMHeadModel's: transformer.*, matrices (in, out) */
    REWRITE_BARE,        /* no prefix, matrices (out, in): llm.c's */
};

struct rewrite_options {
    enum rewrite_layout layout;
    enum pt_dtype dtype; /* PT_F32, PT_BF16 or PT_F16 */
    bool tied;           /* nanogpt: with lm_head.weight */
};

/* Masks are left out. */
int rewrite(const struct tensor_list *in, const struct rewrite_options *o, struct arena *a,
            struct tensor_list *ret, struct err *err) MUST_CHECK;

#endif
