/* reference_parts.h - what the references of several kinds have in common. */
#ifndef TK_TESTS_TRAINER_MODEL_REFERENCE_PARTS_H
#define TK_TESTS_TRAINER_MODEL_REFERENCE_PARTS_H

#include "reference.h"

/* Every element of r, as `cell` takes it. */
#define EACH(r, b, y, x, c)                                                                                  \
    for (int b = 0; b < (r)->batch; b++)                                                                     \
        for (int y = 0; y < (r)->shape.rows; y++)                                                            \
            for (int x = 0; x < (r)->shape.cols; x++)                                                        \
                for (int c = 0; c < (r)->shape.channels; c++)

static inline double *cell(struct reference *r, int b, int y, int x, int c)
{
    return &r->value[((b * r->shape.rows + y) * r->shape.cols + x) * r->shape.channels + c];
}

int reference_integer(const struct layer_spec *l, const char *key);
void reference_reshape(struct reference *r, struct shape s);

/* Rows of `n` at `in` into rows of `out`; bias may be NULL. */
void reference_product(double *to, const double *in, size_t rows, int n, int out, const double *w,
                       const double *bias);

/* n values, `step` apart, to mean 0 and variance 1. */
void reference_normalise(double *v, size_t n, size_t step, double eps);
double reference_gelu(double x, bool tanh_form);

size_t reference_embedding(struct reference *r, const struct layer_spec *l, const double *w);
size_t reference_gpt2_block(struct reference *r, const struct layer_spec *l, const double *w);
size_t reference_lm_head(struct reference *r, const struct layer_spec *l, const double *w);

#endif
