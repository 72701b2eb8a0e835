/* adam.c - {type: adam or adamw, lr, beta1, beta2, eps}: torch.optim.Adam and AdamW. */
#include "trainer/model/optim.h"

enum { BETA1, BETA2, EPS };

static const struct spec_option OPTIONS[] = {
    [BETA1] = {"beta1", SPEC_NUMBER, 0, 0.999999, .fallback = 0.9},
    [BETA2] = {"beta2", SPEC_NUMBER, 0, 0.999999999, .fallback = 0.999},
    [EPS] = {"eps", SPEC_NUMBER, 1e-30, 1, .fallback = 1e-8},
    {0},
};

static struct update_scalars scalars(const struct optimizer_spec *o, double lr, double weight_decay,
                                     int64_t step)
{
    const struct adam_options adam = {.lr = lr,
                                      .beta1 = o->number[BETA1],
                                      .beta2 = o->number[BETA2],
                                      .eps = o->number[EPS],
                                      .weight_decay = weight_decay,
                                      .decoupled = o->ops == &optimizer_adamw};

    return adam_scalars_of(&adam, step);
}

const struct optimizer_ops optimizer_adam = {
    .type = "adam",
    .options = OPTIONS,
    .rule = UPDATE_ADAM,
    .moment = {"exp_avg", "exp_avg_sq"},
    .scalars = scalars,
};

const struct optimizer_ops optimizer_adamw = {
    .type = "adamw",
    .options = OPTIONS,
    .weight_decay = 0.01,
    .rule = UPDATE_ADAM,
    .moment = {"exp_avg", "exp_avg_sq"},
    .scalars = scalars,
};
