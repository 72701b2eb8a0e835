/* layer.c - the table of layer kinds by name. */
#include "trainer/model/layer.h"

#include "common/cleanup.h"

#include <stdio.h>

static const struct layer_ops *const KINDS[] = {
    &layer_conv2d,  &layer_flatten,   &layer_linear,      &layer_maxpool2d,   &layer_relu,
    &layer_softmax, &layer_avgpool2d, &layer_batchnorm1d, &layer_batchnorm2d, &layer_dropout,
    &layer_gelu,    &layer_layernorm, &layer_embedding,   &layer_gpt2_block,  &layer_lm_head,
};

_Static_assert(ARRAY_LEN(KINDS) <= LAYER_KINDS_MAX, "raise LAYER_KINDS_MAX");

int layer_kinds(const char *names[static LAYER_KINDS_MAX])
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        names[i] = KINDS[i]->type;
    return (int)ARRAY_LEN(KINDS);
}

const struct layer_ops *layer_kind(int i)
{
    return KINDS[i];
}

struct layer_spec layer_spec_of(const struct layer_ops *ops, const char *name)
{
    struct layer_spec l = {.ops = ops};

    snprintf(l.name, sizeof(l.name), "%s", name);
    for (int i = 0; ops->options[i].key; i++) {
        const struct layer_option *o = &ops->options[i];
        if (o->type == LAYER_NUMBER)
            l.number[i] = o->required ? 0 : o->fallback;
        else
            l.option[i] = o->required ? 0 : (int64_t)o->fallback;
    }
    return l;
}
