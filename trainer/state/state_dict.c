/* state_dict.c - turn the rows of a model and the moments of an optimizer into lists of tensors, and moments back. */
#include "trainer/state/state_dict.h"

#include <stdio.h>
#include <string.h>

static struct pt_tensor tensor_of(const struct state_row *row)
{
    struct pt_tensor t = {
        .data = row->data, .dtype = row->type == STATE_I64 ? PT_I64 : PT_F32, .dims = row->dims};

    for (int d = 0; d < row->dims; d++)
        t.dim[d] = row->dim[d];
    return t;
}

struct tensor_list state_dict_pt(const struct state_row *row, int rows, struct arena *a)
{
    struct tensor_row *list = arena_array(a, (size_t)rows + 1, struct tensor_row);

    for (int i = 0; i < rows; i++)
        list[i] = (struct tensor_row){.name = row[i].name, .tensor = tensor_of(&row[i])};
    return (struct tensor_list){list, (size_t)rows};
}

struct tensor_list state_dict_safetensors(const struct state_row *row, int rows, struct arena *a)
{
    struct tensor_row *list = arena_array(a, (size_t)rows + 1, struct tensor_row);
    size_t n = 0;

    for (int i = 0; i < rows; i++) {
        if (row[i].tied)
            continue;
        struct tensor_row *to = &list[n++];
        *to = (struct tensor_row){.name = row[i].name, .tensor = tensor_of(&row[i])};
        to->tensor.turned = row[i].turned;
        if (row[i].turned) {
            to->tensor.dim[0] = row[i].dim[1];
            to->tensor.dim[1] = row[i].dim[0];
        }
    }
    return (struct tensor_list){list, n};
}

/* The moments that this optimizer keeps. */
struct moment {
    const char *name;
    float *flat;
};

static int moments_of(const struct optim *o, struct moment out[static 2])
{
    out[0] = (struct moment){o->spec.ops->moment[0], o->m};
    out[1] = (struct moment){o->spec.ops->moment[1], o->v};
    return (o->m != NULL) + (o->v != NULL);
}

static struct pt_tensor tensor_of_moment(const struct moment *m, const struct param_row *row)
{
    struct pt_tensor t = {.data = m->flat + row->offset, .dtype = PT_F32, .dims = row->dims};

    memcpy(t.dim, row->dim, sizeof(row->dim));
    return t;
}

struct tensor_list state_dict_optim(const struct optim *o, const struct model *m,
                                    const struct tensor_list *more, struct arena *a)
{
    struct moment moment[2];
    int rows;
    const struct param_row *row = model_params(m, &rows);
    struct tensor_row *list = arena_array(a, 2 * (size_t)rows + more->len, struct tensor_row);
    size_t n = 0;

    for (int k = 0, moments = moments_of(o, moment); k < moments; k++)
        for (int i = 0; i < rows; i++)
            list[n++] = (struct tensor_row){.name = arena_printf(a, "%s.%s", moment[k].name, row[i].name),
                                            .tensor = tensor_of_moment(&moment[k], &row[i])};
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

int state_dict_moments(const struct tensor_list *list, struct optim *o, const struct model *m, bool apply,
                       struct err *err)
{
    struct moment moment[2];
    int rows;
    const struct param_row *row = model_params(m, &rows);
    char name[PARAM_NAME_BYTES + 20];

    for (int k = 0, moments = moments_of(o, moment); k < moments; k++)
        for (int i = 0; i < rows; i++) {
            snprintf(name, sizeof(name), "%s.%s", moment[k].name, row[i].name);
            const struct pt_tensor want = tensor_of_moment(&moment[k], &row[i]);
            const struct pt_tensor *t = state_dict_find(list, name);
            if (!t || !same_shape(t, &want))
                return err_set(err, ERR_INVALID, "%s: not there, or of another shape than in the model",
                               name);
            if (apply)
                memcpy(moment[k].flat + row[i].offset, t->data, row[i].len * sizeof(float));
        }
    return 0;
}
