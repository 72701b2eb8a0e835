/* llmc.h - llm.c's files of a GPT-2's weights. Pure but for the sink.
 *
 * Format:    256 int32, of which 20240326, version (3: f32, 5: bf16), positions, vocabulary, layers, heads, width and padded
 *            vocabulary; then the tensors of LLMC_TENSORS, those of a block for all layers one behind the other, matrices
 *            as torch.nn.Linear has them (llm.c: train_gpt2.py, write_model).
 * Ownership: a parsed list lives in the arena and points into the file's bytes.
 * Errors:    ERR_INVALID names the field, its value and what was expected, else the sink's own.
 */
#ifndef TK_TRAINER_STATE_WEIGHTS_LLMC_H
#define TK_TRAINER_STATE_WEIGHTS_LLMC_H

#include "trainer/state/files/safetensors.h"

enum {
    LLMC_MAGIC = 20240326,
    LLMC_F32 = 3,
    LLMC_BF16 = 5,
    LLMC_HEADER = 1024,
    LLMC_TENSORS = 16,
    LLMC_SIDE_MAX = 1 << 24,
    LLMC_LAYERS_MAX = 1024,
};

struct llmc_header {
    int32_t version;
    int32_t positions, vocab, layers, heads, width, padded_vocab;
};

/* One of the 16: its name, in a block that behind "h.<layer>.", and its shape in vocabularies, positions and widths. */
struct llmc_tensor {
    const char *name;
    bool block;
    int32_t dims;
    int64_t dim[2];
};
void llmc_tensors(const struct llmc_header *h, struct llmc_tensor out[static LLMC_TENSORS]);

bool llmc_is(const void *bytes, size_t len);

/* Rows of wte behind the vocabulary are padding, and left out. */
int llmc_parse(const void *bytes, size_t len, struct arena *a, struct llmc_header *ret,
               struct tensor_list *list, struct err *err) MUST_CHECK;

/* Not padded. `list` holds all tensors by their bare names ("wte.weight", "h.0.ln_1.weight"), of the header's shapes and of
 * f32 or bf16 as its version says. */
int llmc_write(const struct llmc_header *h, const struct tensor_list *list, const struct pt_sink *sink,
               struct err *err) MUST_CHECK;

#endif
