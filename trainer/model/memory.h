/* memory.h - a model's internal struct, for plan.c, memory.c and model.c alone. */
#ifndef TK_TRAINER_MODEL_MEMORY_H
#define TK_TRAINER_MODEL_MEMORY_H

#include "trainer/model/model.h"

struct model {
    const struct model_spec *spec;
    int batch_max, batch; /* batch: of the last forward pass */
    bool train;           /* so was that pass */
    bool twin;            /* values, buffers and grad are another's */
    int layers;
    int rows, states;
    int first_grad; /* the layer where the backward pass ends: nothing before it has parameters */
    size_t len, workspace_bytes, thread_bytes;
    size_t buffers_bytes;
    float *values;
    uint8_t *buffers;
    struct kctx *device; /* where the passes' memory is; NULL: the process's own */
    struct {
        float *values; /* what the passes read: the process's, or the device's own, */
        void *copies;  /* and elements of them, where those are not f32 */
        uint8_t *buffers;
    } here;
    struct model_numbers numbers;
    void *grad[2]; /* gradients of activations: one is read while the other is written */
    void *scratch; /* of one layer at a time */
    struct layer layer[MODEL_LAYERS_MAX];
    int row_of[MODEL_LAYERS_MAX][LAYER_PARAMS_MAX];
    const void *in[MODEL_LAYERS_MAX]; /* of the last forward pass */
    void *out[MODEL_LAYERS_MAX];      /* NULL: alias */
    uint8_t *saved[MODEL_LAYERS_MAX];
    void *kept[MODEL_LAYERS_MAX];
    struct param_row row[MODEL_LAYERS_MAX * LAYER_PARAMS_MAX];
    void *buffer[MODEL_LAYERS_MAX][LAYER_BUFFERS_MAX];
    struct state_row state[MODEL_LAYERS_MAX * (LAYER_PARAMS_MAX + LAYER_BUFFERS_MAX)];
};

/* Fill the layers and rows of a model that has nothing but its batch_max and numbers. ERR_INVALID names the layer. */
int model_plan(struct model *m, const struct model_spec *spec, struct err *err) MUST_CHECK;

/* Of a planned model. Errors: ERR_FATAL no memory. */
int model_make_state(struct model *m, struct err *err) MUST_CHECK;
int model_make_activations(struct model *m, struct err *err) MUST_CHECK;

/* What exports call a parameter or a buffer of a layer. */
void model_name(const struct layer *l, const char *suffix, char name[static PARAM_NAME_BYTES]);

#endif
