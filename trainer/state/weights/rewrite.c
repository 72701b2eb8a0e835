/* rewrite.c - convert a checkpoint's tensors to another layout, one at a time; unchanged tensors share the source buffer. */
#include "trainer/state/weights/rewrite.h"

#include "trainer/state/weights/gpt2_names.h"
#include "trainer/state/weights/numbers.h"

#include <string.h>

/* In the output's own order. */
static struct pt_tensor convert(const struct pt_tensor *t, bool turn, enum pt_dtype dtype, struct arena *a)
{
    struct pt_tensor out = *t;
    size_t rows = t->dims == 2 ? (size_t)t->dim[0] : 1;
    size_t width = (size_t)pt_tensor_bytes(t) / pt_dtype_bytes(t->dtype) / rows;
    float *line = arena_array(a, width, float);
    const size_t bytes = pt_dtype_bytes(dtype);

    out.dtype = dtype;
    uint8_t *data = arena_calloc(a, rows * width, bytes);
    out.data = data;
    for (size_t i = 0; i < rows; i++) {
        numbers_to_f32(t->data, t->dtype, i * width, width, line);
        if (!turn) {
            numbers_from_f32(line, width, dtype, data + i * width * bytes);
            continue;
        }
        for (size_t k = 0; k < width; k++)
            numbers_from_f32(&line[k], 1, dtype, data + (k * rows + i) * bytes);
    }
    if (turn) {
        out.dim[0] = t->dim[1];
        out.dim[1] = t->dim[0];
    }
    return out;
}

/* How far a name stands in the list; its length: nowhere. */
static size_t place_of(const struct tensor_list *list, const char *bare)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->row[i].name, bare) == 0)
            return i;
    return list->len;
}

static int rewrite_row(const struct tensor_row *in, bool turned, const struct rewrite_options *o,
                       struct arena *a, struct tensor_row *ret, struct err *err)
{
    const char *bare = gpt2_names_bare(in->name);
    const struct pt_tensor *t = &in->tensor;
    bool matrix = gpt2_names_is_matrix(bare) && t->dims == 2;
    bool turn = matrix && turned != (o->layout == REWRITE_HUGGINGFACE);

    if (!numbers_are_floats(t->dtype) || pt_tensor_bytes(t) < 1 || t->dims < 1 || t->dims > 2)
        return err_set(err, ERR_INVALID, "%.100s: expected a vector or matrix of floats", in->name);
    ret->name = o->layout == REWRITE_BARE || strcmp(bare, "lm_head.weight") == 0
                    ? arena_strdup(a, bare)
                    : arena_printf(a, "transformer.%s", bare);
    ret->tensor = !turn && t->dtype == o->dtype ? *t : convert(t, turn, o->dtype, a);
    return 0;
}

int rewrite(const struct tensor_list *in, const struct rewrite_options *o, struct arena *a,
            struct tensor_list *ret, struct err *err)
{
    struct tensor_row *row = arena_array(a, in->len + 2, struct tensor_row);
    bool turned = gpt2_names_transposed(in);
    const struct tensor_row *wte = NULL;
    struct gpt2_names_size size;
    size_t n = 0;

    const struct pt_tensor *head = gpt2_names_find(in, "lm_head.weight");

    if (gpt2_names_size(in, &size, err))
        return -1;
    if (head && !numbers_equal(head, gpt2_names_find(in, "wte.weight")))
        return err_set(err, ERR_INVALID,
                       "lm_head.weight: differs from wte.weight, but a GPT-2 shares one tensor for both");
    for (size_t i = 0; i < in->len; i++) {
        const char *bare = gpt2_names_bare(in->row[i].name);
        if (gpt2_names_is_mask(bare) || strcmp(bare, "lm_head.weight") == 0)
            continue;
        if (rewrite_row(&in->row[i], turned, o, a, &row[n], err))
            return -1;
        if (place_of(&(struct tensor_list){row, n}, row[n].name) < n)
            return err_set(err, ERR_INVALID, "%.100s: two tensors of one name", row[n].name);
        if (strcmp(bare, "wte.weight") == 0)
            wte = &row[n];
        n++;
    }
    if (o->tied && wte)
        row[n++] = (struct tensor_row){"lm_head.weight", wte->tensor};
    *ret = (struct tensor_list){row, n};
    return 0;
}
