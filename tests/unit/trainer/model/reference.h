/* reference.h - the layers' forward passes in plain f64, from their definitions in torch.nn: what gradients are held
 * against, by finite differences. */
#ifndef TK_TESTS_TRAINER_MODEL_REFERENCE_H
#define TK_TESTS_TRAINER_MODEL_REFERENCE_H

#include "trainer/model/layer.h"

enum { REFERENCE_CELLS = 8192 };

/* A batch of activations: (batch, rows, cols, channels). */
struct reference {
    int batch;
    struct shape shape;
    struct kctx *ctx;              /* for the draws of dropout, which are taken from its kernel */
    const struct model_step *step; /* of a training pass */
    const double *table;           /* of an embedding, for the head that shares it */
    double value[REFERENCE_CELLS];
};

/* One layer; returns how many of the parameters at `w` are its own. Fails the test for a kind that has no reference. */
size_t reference_layer(struct reference *r, const struct layer_spec *l, const double *w);

bool reference_has(const char *type);

/* Minus the logarithm of a row's share for its label; `smooth` of the wish goes to all classes alike. */
double reference_cross_entropy(const double *row, int n, int label, double smooth);

/* An option's value by its name. */
double reference_option(const struct layer_spec *l, const char *key);

#endif
