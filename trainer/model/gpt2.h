/* gpt2.h - a GPT-2 of any size as a list of layers. trainer/cli calls it. Pure.
 *
 * Names are those of the PyTorch modules: transformer.wte, transformer.wpe, transformer.h.0 ..., transformer.ln_f,
 * lm_head.
 * Errors:    ERR_INVALID naming the field.
 */
#ifndef TK_TRAINER_MODEL_GPT2_H
#define TK_TRAINER_MODEL_GPT2_H

#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/model/spec.h"

enum { GPT2_LAYERS_MAX = MODEL_LAYERS_MAX - 3 };
#define GPT2_EPS 1e-5 /* of its norms */

/* "d12", "d24", "d36", "d48", or "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl": fills n_layer, n_head and n_embd. */
int gpt2_size(const char *name, struct gpt2_spec *ret, struct err *err) MUST_CHECK;

/* Write the layers of m->gpt2; plan.c checks that the sizes fit each other. */
void gpt2_layers(struct model_spec *m);

#endif
