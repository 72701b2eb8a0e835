/* gpt2_names.c - map the names that other programs give the tensors of a GPT-2 onto our own. */
#include "trainer/state/weights/gpt2_names.h"
#include "common/sv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *gpt2_names_bare(const char *name)
{
    static const char *const before[] = {"module.", "_orig_mod.", "transformer."};

    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        if (strncmp(name, before[i], strlen(before[i])) == 0)
            name += strlen(before[i]);
    return name;
}

const struct pt_tensor *gpt2_names_find(const struct tensor_list *list, const char *bare)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(gpt2_names_bare(list->row[i].name), bare) == 0)
            return &list->row[i].tensor;
    return NULL;
}

bool gpt2_names_is_mask(const char *name)
{
    return sv_ends(sv_from(name), ".attn.bias") || sv_ends(sv_from(name), ".attn.masked_bias");
}

bool gpt2_names_is_matrix(const char *name)
{
    return sv_ends(sv_from(name), ".c_attn.weight") || sv_ends(sv_from(name), ".c_proj.weight") ||
           sv_ends(sv_from(name), ".c_fc.weight");
}

bool gpt2_names_transposed(const struct tensor_list *list)
{
    const struct pt_tensor *t = gpt2_names_find(list, "h.0.attn.c_attn.weight");

    return t && t->dims == 2 && t->dim[1] % 3 == 0 && t->dim[1] / 3 == t->dim[0];
}

int gpt2_names_size(const struct tensor_list *list, struct gpt2_names_size *ret, struct err *err)
{
    const struct pt_tensor *wte = gpt2_names_find(list, "wte.weight");
    const struct pt_tensor *wpe = gpt2_names_find(list, "wpe.weight");
    char name[64];

    if (!wte || !wpe || wte->dims != 2 || wpe->dims != 2 || wte->dim[1] != wpe->dim[1])
        return err_set(err, ERR_INVALID, "not a GPT-2: expected wte.weight and wpe.weight of the same width");
    *ret = (struct gpt2_names_size){wte->dim[0], wpe->dim[0], 0, wte->dim[1]};
    do
        snprintf(name, sizeof(name), "h.%" PRId64 ".ln_1.weight", ret->layers);
    while (gpt2_names_find(list, name) && ++ret->layers);
    return ret->layers ? 0 : err_set(err, ERR_INVALID, "h.0.ln_1.weight: missing: not a GPT-2");
}
