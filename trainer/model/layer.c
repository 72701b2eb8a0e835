/* layer.c - the table of layer kinds by name. */
#include "trainer/model/layer.h"

#include <stdio.h>

#define LAYER_ROW(name) &layer_##name,
const struct layer_ops *const layer_kinds[] = {LAYERS(LAYER_ROW) NULL};

#define LAYER_TYPE(name) #name,
const char *const layer_types[] = {LAYERS(LAYER_TYPE) NULL};

struct layer_spec layer_spec_of(const struct layer_ops *ops, const char *name)
{
    struct layer_spec l = {.ops = ops};

    snprintf(l.name, sizeof(l.name), "%s", name);
    spec_defaults(ops->options, l.option, l.number);
    return l;
}
