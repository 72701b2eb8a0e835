/* state_dict.c - turn the rows of a model and the moments of an optimizer into lists of tensors, and moments back. */
#include "trainer/state/state_dict.h"

#include "common/cleanup.h"

#include <string.h>

struct tensor_list state_dict_model(const struct state_row *row, int rows, enum state_dict_form form,
                                    struct arena *a)
{
    struct tensor_row *list = arena_array(a, (size_t)rows + 1, struct tensor_row);
    size_t n = 0;

    for (int i = 0; i < rows; i++) {
        if (row[i].tied && form == STATE_DICT_SAFETENSORS)
            continue;
        struct pt_tensor *t = &list[n].tensor;
        list[n++].name = row[i].name;
        t->data = row[i].data;
        t->dtype = row[i].type == STATE_I64 ? PT_I64 : PT_F32;
        t->dims = row[i].dims;
        t->transposed = row[i].transposed && form == STATE_DICT_SAFETENSORS;
        for (int d = 0; d < row[i].dims; d++)
            t->dim[d] = row[i].dim[t->transposed ? 1 - d : d];
    }
    return (struct tensor_list){list, n};
}

struct tensor_list state_dict_optim(const struct optim *o, const struct model *m,
                                    const struct tensor_list *more, struct arena *a)
{
    float *const moment[] = {o->m, o->v};
    const struct param_row *row = m->row;
    struct tensor_row *list =
        arena_array(a, ARRAY_LEN(moment) * (size_t)m->rows + more->len, struct tensor_row);
    size_t n = 0;

    for (size_t k = 0; k < ARRAY_LEN(moment); k++)
        for (int i = 0; moment[k] && i < m->rows; i++) {
            struct tensor_row *to = &list[n++];
            to->name = arena_printf(a, "%s.%s", o->spec.ops->moment[k], row[i].name);
            to->tensor = (struct pt_tensor){.data = moment[k] + row[i].offset, .dims = row[i].dims};
            memcpy(to->tensor.dim, row[i].dim, sizeof(row[i].dim));
        }
    memcpy(list + n, more->row, more->len * sizeof(*list));
    return (struct tensor_list){list, n + more->len};
}

const struct pt_tensor *state_dict_find(const struct tensor_list *list, const char *name)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->row[i].name, name) == 0)
            return &list->row[i].tensor;
    return NULL;
}

static bool same_shape(const struct pt_tensor *a, const struct pt_tensor *b)
{
    return a->dtype == b->dtype && a->dims == b->dims &&
           memcmp(a->dim, b->dim, (size_t)a->dims * sizeof(a->dim[0])) == 0;
}

int state_dict_check(const struct tensor_list *want, const struct tensor_list *list, struct err *err)
{
    for (size_t i = 0; i < want->len; i++) {
        const struct pt_tensor *t = state_dict_find(list, want->row[i].name);
        if (!t || !same_shape(t, &want->row[i].tensor))
            return err_set(err, ERR_INVALID, "%s: not there, or of another shape than in the model",
                           want->row[i].name);
    }
    return 0;
}

void state_dict_copy(const struct tensor_list *want, const struct tensor_list *list)
{
    for (size_t i = 0; i < want->len; i++) {
        const struct pt_tensor *t = state_dict_find(list, want->row[i].name);
        void *to = (void *)(uintptr_t)want->row[i].tensor.data; /* the model's memory is not const */
        memcpy(to, t->data, (size_t)pt_tensor_bytes(t));
    }
}
