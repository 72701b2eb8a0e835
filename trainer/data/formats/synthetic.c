/* synthetic.c - {format: synthetic, items, outputs, targets, generator}: numbers from a seed. */
#include "trainer/data/source_state.h"

#include "trainer/data/synthetic.h"

enum { ITEMS, OUTPUTS, TARGETS, GENERATOR };

static const char *const RULES[] = {[SYNTHETIC_TEACHER] = "teacher", [SYNTHETIC_UNIFORM] = "uniform", NULL};
static const char *const GENERATORS[] = {"own", "before_weights", NULL};

static const struct spec_option OPTIONS[] = {
    [ITEMS] = {"items", SPEC_INTEGER, 1, INT32_MAX / 2, .required = true},
    [OUTPUTS] = {"outputs", SPEC_INTEGER, 1, SYNTHETIC_OUTPUTS_MAX, .required = true},
    [TARGETS] = {"targets", SPEC_CHOICE, .choices = RULES, .fallback = SYNTHETIC_TEACHER},
    [GENERATOR] = {"generator", SPEC_CHOICE, .choices = GENERATORS},
    {0},
};

static struct synthetic what(const struct data_spec *d)
{
    return (struct synthetic){(enum synthetic_rule)d->option[TARGETS], (int32_t)d->option[OUTPUTS]};
}

static int accept(struct data_spec *d, const char **ret_key, struct err *err)
{
    *ret_key = OPTIONS[TARGETS].key;
    if (d->option[TARGETS] == SYNTHETIC_UNIFORM && !d->values)
        return err_set(err, ERR_INVALID, "expected teacher, as this loss takes labels");
    return 0;
}

static int open(struct source *s, struct err *err)
{
    const struct data_spec *d = s->o.spec;

    (void)err;
    s->layout = (struct data_layout){.train_items = d->option[ITEMS],
                                     .rows = d->rows,
                                     .cols = d->cols,
                                     .channels = d->channels,
                                     .floats = 1,
                                     .values = d->values ? (int32_t)d->option[OUTPUTS] : 0};
    return 0;
}

static int load(const struct source *s, struct dataset *d, struct err *err)
{
    const struct synthetic how = what(s->o.spec);
    struct torch_rng g;

    torch_rng_seed(&g, s->o.seed);
    if (synthetic_make(&how, &g, d, err))
        return -1;
    source_count_classes(d);
    return 0;
}

static uint64_t draws(const struct data_spec *d, const struct data_layout *l)
{
    const struct synthetic how = what(d);

    return d->option[GENERATOR] ? synthetic_draws(&how, l) : 0;
}

const struct data_format format_synthetic = {
    .name = "synthetic",
    .about =
        {{"{format: synthetic, items, outputs [, targets, generator]}",
          "Inputs from 0 to 1. targets: teacher (the classes or values that a seeded linear map gives) or "
          "uniform (values from 0 to 1). generator: own, or before_weights: drawn from the weights' "
          "generator, "
          "before them."}},
    .options = OPTIONS,
    .scaled = true,
    .accept = accept,
    .open = open,
    .load = load,
    .draws = draws,
};
