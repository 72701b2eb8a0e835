/* layer.c - the table of layer kinds by name. */
#include "trainer/model/layer.h"

#include "common/cleanup.h"

#include <stdio.h>

#define LAYER_ROW(name) &layer_##name,
static const struct layer_ops *const KINDS[] = {LAYERS(LAYER_ROW)};
#undef LAYER_ROW

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
    spec_defaults(ops->options, l.option, l.number);
    return l;
}
