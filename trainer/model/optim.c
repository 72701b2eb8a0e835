/* optim.c - which kernel updates the parameters, and at what rate. */
#include "trainer/model/optim.h"

#include "kernels/adam.h"
#include "kernels/sgd.h"

#include <stdlib.h>
#include <string.h>

static float *zeros(size_t len)
{
    size_t bytes = (len * sizeof(float) + 64) / 64 * 64;
    float *p = aligned_alloc(64, bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

int optim_make(struct optim *o, const struct optimizer_spec *spec, size_t len, struct err *err)
{
    *o = (struct optim){.spec = *spec, .len = len};
    if (spec->type == OPTIMIZER_SGD)
        return 0;
    o->m = zeros(len);
    o->v = zeros(len);
    if (o->m && o->v)
        return 0;
    optim_release(o);
    return err_set(err, ERR_FATAL, "no memory for the optimiser's moments");
}

void optim_release(struct optim *o)
{
    free(o->m);
    free(o->v);
    o->m = NULL;
    o->v = NULL;
}

void optim_step(struct optim *o, struct kctx *ctx, double lr, float *values, const float *grad)
{
    o->step++;
    switch (o->spec.type) {
    case OPTIMIZER_ADAM: {
        struct adam_options adam = {
            .lr = lr, .beta1 = o->spec.beta1, .beta2 = o->spec.beta2, .eps = o->spec.eps};
        adam_step(ctx, &adam, o->step, values, o->m, o->v, grad, o->len);
        break;
    }
    case OPTIMIZER_SGD: {
        struct sgd_options sgd = {.lr = lr};
        sgd_step(ctx, &sgd, values, NULL, grad, o->len);
        break;
    }
    }
}

double optim_rate(const struct optimizer_spec *o, const struct schedule_spec *s, int world, int64_t epoch)
{
    double lr = o->lr_times_world ? o->lr * world : o->lr;

    if (s->type == SCHEDULE_STEP)
        for (int64_t e = s->every_epochs; e < epoch; e += s->every_epochs)
            lr *= s->gamma;
    return lr;
}
