/* gpt2.c - build the list of a GPT-2's layers: embedding, blocks, final norm, head. */
#include "trainer/model/gpt2.h"

#include "common/nearest.h"
#include "trainer/model/layer.h"

#include <stdio.h>
#include <string.h>

int gpt2_size(const char *name, struct gpt2_spec *ret, struct err *err)
{
    static const struct {
        const char *name, *also;
        int64_t n_layer, n_head, n_embd;
    } sizes[] = {
        {"d12", "gpt2", 12, 12, 768},
        {"d24", "gpt2-medium", 24, 16, 1024},
        {"d36", "gpt2-large", 36, 20, 1280},
        {"d48", "gpt2-xl", 48, 25, 1600},
    };

    struct nearest near = nearest_to(sv_from(name));
    char hint[NEAREST_HINT_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        nearest_offer(&near, sizes[i].name);
        nearest_offer(&near, sizes[i].also);
        if (strcmp(name, sizes[i].name) != 0 && strcmp(name, sizes[i].also) != 0)
            continue;
        ret->n_layer = sizes[i].n_layer;
        ret->n_head = sizes[i].n_head;
        ret->n_embd = sizes[i].n_embd;
        return 0;
    }
    return err_set(err, ERR_INVALID, "expected d12, d24, d36 or d48, got \"%.60s\"%s", name,
                   nearest_hint(&near, "", hint));
}

static struct layer_spec *append(struct model_spec *m, const struct layer_ops *ops, const char *name)
{
    struct layer_spec *l = &m->layer[m->layers];

    *l = layer_spec_of(ops, name);
    l->place = m->layers++;
    return l;
}

static void set(struct layer_spec *l, const char *key, int64_t value)
{
    int i = 0;

    while (strcmp(l->ops->options[i].key, key) != 0)
        i++;
    l->option[i] = value;
}

void gpt2_layers(struct model_spec *m)
{
    const struct gpt2_spec *g = &m->gpt2;
    struct layer_spec *l;

    *m = (struct model_spec){
        .gpt2 = *g, .input = {.rows = (int32_t)g->block_size, .cols = 1, .channels = 1, .sequence = true}};
    l = append(m, &layer_embedding, "transformer");
    set(l, "vocab", g->vocab);
    set(l, "width", g->n_embd);
    for (int64_t i = 0; i < g->n_layer; i++) {
        char name[LAYER_NAME_BYTES];
        snprintf(name, sizeof(name), "transformer.h.%d", (int)i);
        l = append(m, &layer_gpt2_block, name);
        set(l, "heads", g->n_head);
        set(l, "blocks", g->n_layer);
        set(l, "recompute", g->recompute);
    }
    (void)append(m, &layer_layernorm, "transformer.ln_f");
    l = append(m, &layer_lm_head, "lm_head");
    set(l, "vocab", g->vocab);
}
