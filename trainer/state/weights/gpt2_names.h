/* gpt2_names.h - what programs call the tensors of a GPT-2, and how they lay them out. Pure.
 *
 * A bare name is Hugging Face's in GPT2Model: "wte.weight", "h.0.attn.c_attn.weight", "ln_f.bias"; and "lm_head.weight".
 * Before it may stand "module." (DDP), "_orig_mod." (torch.compile) and "transformer.".
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_GPT2_NAMES_H
#define TK_TRAINER_STATE_WEIGHTS_GPT2_NAMES_H

#include "trainer/state/files/safetensors.h"

/* The bare name: a part of `name`. */
const char *gpt2_names_bare(const char *name);

/* The tensor of that bare name; NULL: there is none. */
const struct pt_tensor *gpt2_names_find(const struct tensor_list *list, const char *bare);

/* A mask that some programs save with each block: no weight. */
bool gpt2_names_is_mask(const char *name);

/* c_attn, c_proj and c_fc: what Hugging Face keeps as (in, out), and torch.nn.Linear as (out, in). */
bool gpt2_names_is_matrix(const char *name);

/* Do the matrices of this list lie as (in, out)? Told by a c_attn.weight, which is no square. */
bool gpt2_names_transposed(const struct tensor_list *list);

struct gpt2_names_size {
    int64_t vocab, positions, layers, width;
};

/* ERR_INVALID: these are no GPT-2's. */
int gpt2_names_size(const struct tensor_list *list, struct gpt2_names_size *ret, struct err *err) MUST_CHECK;

#endif
