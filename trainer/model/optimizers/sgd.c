/* sgd.c - {type: sgd, lr, momentum, dampening, nesterov}: torch.optim.SGD. */
#include "trainer/model/optim.h"

enum { MOMENTUM, DAMPENING, NESTEROV };

static const struct spec_option OPTIONS[] = {
    [MOMENTUM] = {"momentum", SPEC_NUMBER, 0, 1, .fallback = 0},
    [DAMPENING] = {"dampening", SPEC_NUMBER, 0, 1, .fallback = 0},
    [NESTEROV] = {"nesterov", SPEC_FLAG, .fallback = 0},
    {0},
};

static int moments(const struct optimizer_spec *o)
{
    return o->number[MOMENTUM] != 0;
}

/* torch refuses these too, since they would have no effect. */
static int check(const struct optimizer_spec *o, const char **ret_key, struct err *err)
{
    *ret_key = OPTIONS[NESTEROV].key;
    if (o->option[NESTEROV] && (o->number[MOMENTUM] <= 0 || o->number[DAMPENING] != 0))
        return err_set(err, ERR_INVALID, "expected a momentum above 0 and no dampening beside it");
    return 0;
}

/* torch initialises the moment with the first gradient. */
static struct update_scalars scalars(const struct optimizer_spec *o, double lr, double weight_decay,
                                     int64_t step)
{
    const struct sgd_options sgd = {.lr = lr,
                                    .momentum = o->number[MOMENTUM],
                                    .dampening = step == 1 ? 0 : o->number[DAMPENING],
                                    .weight_decay = weight_decay,
                                    .nesterov = o->option[NESTEROV]};

    return sgd_scalars_of(&sgd);
}

const struct optimizer_ops optimizer_sgd = {
    .type = "sgd",
    .options = OPTIONS,
    .rule = UPDATE_SGD,
    .moment = {"momentum_buffer"},
    .moments = moments,
    .check = check,
    .scalars = scalars,
};
