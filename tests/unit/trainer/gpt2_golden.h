/* gpt2_golden.h - PyTorch's recorded values of a GPT-2 (tests/golden/torch), for the tests that compare with them.
 *
 * Ownership: all that is taken lives until golden_close.
 * Errors:    fail the test.
 */
#ifndef TK_TESTS_TRAINER_GPT2_GOLDEN_H
#define TK_TESTS_TRAINER_GPT2_GOLDEN_H

#include "common/buf.h"
#include "trainer/cli/config.h"
#include "trainer/model/model.h"
#include "trainer/state/files/safetensors.h"

/* The folder of records: TK_GOLDEN_DIR of the environment, for programs that run where the sources are not. */
const char *golden_dir(void);

/* The network of gpt2_bf16.safetensors, and its training. */
extern const char golden_bf16_yaml[];

struct golden {
    struct arena a;
    struct buf file;
    struct tensor_list list;
};

void golden_open(struct golden *g, const char *name); /* "gpt2.safetensors" */
void golden_close(struct golden *g);

/* A configuration for tests: data from the folder of records, nothing resumed and nothing saved. */
void golden_config(struct golden *g, const char *yaml, struct config *cfg);

/* A tensor of so many elements; its f32 or f64 numbers. */
const struct pt_tensor *golden_tensor(const struct golden *g, const char *key, size_t len);
void golden_take(const struct golden *g, const char *key, float *to, size_t len);
double golden_number(const struct golden *g, const char *key);

/* All parameters below `key` ("key/NAME") at once, in the model's order. */
float *golden_flat(struct golden *g, const struct model *m, const char *key);

/* From the outputs of model_forward, of `rows` tokens, to those of the head: out (rows, vocab), where the model's memory is. */
void golden_logits(const struct model *m, struct kctx *ctx, const void *in, int rows, void *out);

/* Of two tensors: relative to the second as a whole. */
double golden_distance(const float *got, const float *want, size_t n);

#endif
