/* state_dict.c - turn the rows of a model and of an optimizer into dicts of tensors. */
#include "trainer/state/state_dict.h"

#include <inttypes.h>
#include <string.h>

static struct pt_tensor tensor_of(const struct state_row *row)
{
    struct pt_tensor t = {
        .data = row->data, .dtype = row->type == STATE_I64 ? PT_I64 : PT_F32, .dims = row->dims};

    for (int d = 0; d < row->dims; d++)
        t.dim[d] = row->dim[d];
    return t;
}

struct tensor_list state_dict_model(const struct state_row *row, int rows, bool tied, struct arena *a)
{
    struct tensor_row *list = arena_array(a, (size_t)rows + 1, struct tensor_row);

    size_t n = 0;

    for (int i = 0; i < rows; i++)
        if (tied || !row[i].tied)
            list[n++] = (struct tensor_row){row[i].name, tensor_of(&row[i])};
    return (struct tensor_list){list, n};
}

struct pt_value state_dict_pt(const struct tensor_list *list, struct arena *a)
{
    struct pt_item *items = arena_array(a, list->len + 1, struct pt_item);

    for (size_t i = 0; i < list->len; i++)
        items[i] = (struct pt_item){pt_str(list->row[i].name), pt_tensor(list->row[i].tensor)};
    return pt_dict(PT_ORDERED_DICT, items, list->len);
}

/* order[i] is the row that torch calls parameter i; *decayed of them are in the first group. */
static int *number_params(const struct optim *o, const struct param_row *row, int rows, int *decayed,
                          struct arena *a)
{
    int *order = arena_array(a, (size_t)rows + 1, int);
    int n = 0;

    *decayed = rows;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < rows; i++)
            if ((o->spec.decay_matrices_only && row[i].dims < 2) == pass)
                order[n++] = i;
        if (pass == 0)
            *decayed = n;
    }
    return order;
}

static struct pt_tensor moment(const float *flat, const struct param_row *row)
{
    struct pt_tensor t = {.data = flat + row->offset, .dtype = PT_F32, .dims = row->dims};

    memcpy(t.dim, row->dim, sizeof(row->dim));
    return t;
}

static bool is_adam(const struct optim *o)
{
    return o->spec.type == OPTIMIZER_ADAM || o->spec.type == OPTIMIZER_ADAMW;
}

/* What torch keeps per parameter; false: nothing. */
static bool param_state(const struct optim *o, const struct param_row *row, struct pt_value *ret,
                        struct arena *a)
{
    struct pt_item *items = arena_array(a, 3, struct pt_item);
    size_t n = 0;

    if (is_adam(o)) {
        float *step = arena_new(a, float);
        *step = (float)o->step; /* torch counts in f32 */
        items[n++] = (struct pt_item){pt_str("step"), pt_tensor((struct pt_tensor){.data = step})};
        items[n++] = (struct pt_item){pt_str("exp_avg"), pt_tensor(moment(o->m, row))};
        items[n++] = (struct pt_item){pt_str("exp_avg_sq"), pt_tensor(moment(o->v, row))};
    } else if (o->m) {
        items[n++] = (struct pt_item){pt_str("momentum_buffer"), pt_tensor(moment(o->m, row))};
    }
    *ret = pt_dict(PT_DICT, items, n);
    return n > 0;
}

static struct pt_value state_of(const struct optim *o, const struct param_row *row, const int *order,
                                int rows, struct arena *a)
{
    struct pt_item *items = arena_array(a, (size_t)rows + 1, struct pt_item);
    size_t n = 0;

    for (int i = 0; i < rows; i++) {
        items[n].key = pt_int(i);
        if (param_state(o, &row[order[i]], &items[n].value, a))
            n++;
    }
    return pt_dict(PT_DICT, items, n);
}

static struct pt_value numbers(int from, int to, struct arena *a)
{
    struct pt_value *v = arena_array(a, (size_t)(to - from) + 1, struct pt_value);

    for (int i = from; i < to; i++)
        v[i - from] = pt_int(i);
    return pt_seq(PT_LIST, v, (size_t)(to - from));
}

static struct pt_value truth(bool b)
{
    return (struct pt_value){.type = PT_BOOL, .b = b};
}

/* The keys of torch 2.15's Adam and SGD, in their order. */
static struct pt_value group(const struct optim *o, double lr, bool decay, struct pt_value params,
                             struct arena *a)
{
    const struct optimizer_spec *s = &o->spec;
    const struct pt_value none = {.type = PT_NONE};
    struct pt_value *betas = arena_array(a, 2, struct pt_value);
    struct pt_value wd = pt_float(decay ? s->weight_decay : 0);

    betas[0] = pt_float(s->beta1);
    betas[1] = pt_float(s->beta2);
    const struct pt_item adam[] = {
        {pt_str("lr"), pt_float(lr)},
        {pt_str("betas"), pt_seq(PT_TUPLE, betas, 2)},
        {pt_str("eps"), pt_float(s->eps)},
        {pt_str("weight_decay"), wd},
        {pt_str("amsgrad"), truth(false)},
        {pt_str("maximize"), truth(false)},
        {pt_str("foreach"), none},
        {pt_str("capturable"), truth(false)},
        {pt_str("differentiable"), truth(false)},
        {pt_str("fused"), none},
        {pt_str("decoupled_weight_decay"), truth(s->type == OPTIMIZER_ADAMW)},
        {pt_str("params"), params},
    };
    const struct pt_item sgd[] = {
        {pt_str("lr"), pt_float(lr)},
        {pt_str("momentum"), pt_float(s->momentum)},
        {pt_str("dampening"), pt_float(s->dampening)},
        {pt_str("weight_decay"), wd},
        {pt_str("nesterov"), truth(s->nesterov)},
        {pt_str("maximize"), truth(false)},
        {pt_str("foreach"), none},
        {pt_str("differentiable"), truth(false)},
        {pt_str("fused"), none},
        {pt_str("params"), params},
    };
    size_t len = is_adam(o) ? ARRAY_LEN(adam) : ARRAY_LEN(sgd);
    struct pt_item *items = arena_array(a, len, struct pt_item);
    memcpy(items, is_adam(o) ? adam : sgd, len * sizeof(*items));
    return pt_dict(PT_DICT, items, len);
}

struct pt_value state_dict_optim(const struct optim *o, const struct model *m, double lr,
                                 const struct pt_item *more, size_t more_len, struct arena *a)
{
    int rows;
    int decayed;
    const struct param_row *row = model_params(m, &rows);
    const int *order = number_params(o, row, rows, &decayed, a);
    struct pt_value *groups = arena_array(a, 2, struct pt_value);
    struct pt_item *items = arena_array(a, 2 + more_len, struct pt_item);

    groups[0] = group(o, lr, true, numbers(0, decayed, a), a);
    groups[1] = group(o, lr, false, numbers(decayed, rows, a), a);
    items[0] = (struct pt_item){pt_str("state"), state_of(o, row, order, rows, a)};
    items[1] = (struct pt_item){pt_str("param_groups"),
                                pt_seq(PT_LIST, groups, o->spec.decay_matrices_only ? 2 : 1)};
    for (size_t i = 0; i < more_len; i++)
        items[2 + i] = more[i];
    return pt_dict(PT_DICT, items, 2 + more_len);
}

static bool same_shape(const struct pt_tensor *a, const struct pt_tensor *b)
{
    return a->dtype == b->dtype && a->dims == b->dims &&
           memcmp(a->dim, b->dim, (size_t)a->dims * sizeof(a->dim[0])) == 0;
}

static const struct pt_tensor *find(const struct tensor_list *list, const char *name)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->row[i].name, name) == 0)
            return &list->row[i].tensor;
    return NULL;
}

int state_dict_match(const struct tensor_list *list, const struct model *m, struct arena *a,
                     const struct pt_tensor ***take, struct err *err)
{
    int rows;
    const struct state_row *row = model_state(m, &rows);
    const struct pt_tensor **found = arena_array(a, (size_t)rows + 1, const struct pt_tensor *);

    size_t seconds = 0; /* names that a list may lack */

    for (int i = 0; i < rows; i++)
        seconds += row[i].tied && !find(list, row[i].name);
    if (list->len + seconds != (size_t)rows)
        return err_set(err, ERR_INVALID, "%zu tensors, but the model has %d", list->len, rows);
    for (int i = 0; i < rows; i++) {
        struct pt_tensor want = tensor_of(&row[i]);
        if (row[i].tied)
            continue;
        found[i] = find(list, row[i].name);
        if (!found[i])
            return err_set(err, ERR_INVALID, "%s: not there, but the model has it", row[i].name);
        if (!same_shape(found[i], &want))
            return err_set(err, ERR_INVALID, "%s: has another shape or type than in the model", row[i].name);
    }
    *take = found;
    return 0;
}

static int take_moment(const struct pt_value *state, const char *key, float *flat,
                       const struct param_row *row, bool apply, struct err *err)
{
    const struct pt_value *v = pt_find(state, key);
    struct pt_tensor want = moment(flat, row);

    if (!v || v->type != PT_TENSOR || !same_shape(&v->tensor, &want))
        return err_set(err, ERR_INVALID, "state: %s: %s: not there, or of another shape than in the model",
                       row->name, key);
    if (apply)
        memcpy(flat + row->offset, v->tensor.data, row->len * sizeof(float));
    return 0;
}

int state_dict_moments(const struct pt_value *root, struct optim *o, const struct model *m, bool apply,
                       struct err *err)
{
    cleanup_arena struct arena a = {0};
    int rows;
    int decayed;
    const struct param_row *row = model_params(m, &rows);
    const int *order = number_params(o, row, rows, &decayed, &a);
    const struct pt_value *all = pt_find(root, "state");

    if (!all)
        return err_set(err, ERR_INVALID, "state: not there");
    for (int i = 0; i < rows && o->m; i++) {
        const struct pt_value *state = pt_find_int(all, i);
        if (take_moment(state, is_adam(o) ? "exp_avg" : "momentum_buffer", o->m, &row[order[i]], apply,
                        err) ||
            (o->v && take_moment(state, "exp_avg_sq", o->v, &row[order[i]], apply, err)))
            return -1;
    }
    return 0;
}
