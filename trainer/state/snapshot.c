/* snapshot.c - write a run's state as the files of a checkpoint, and read it back. */
#include "trainer/state/snapshot.h"

#include "trainer/state/files/torch_unzip.h"
#include "trainer/state/state_dict.h"

#include <math.h>
#include <string.h>

static const char MODEL_SAFETENSORS[] = "model.safetensors";
static const char STATE_PT[] = "state.pt";
enum { NAMES_BYTES_MAX = 64 << 20 }; /* of a file, beyond its numbers */

static int put_safetensors(void *ctx, const struct pt_sink *sink, struct err *err)
{
    return safetensors_write(ctx, sink, err);
}

struct archive {
    struct pt_value root;
    const char *name;
};

static int put_pt(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct archive *p = ctx;

    return torch_zip_write(&p->root, p->name, sink, err);
}

static bool all_finite(const float *x, size_t n)
{
    const uint32_t exponent = 0x7f800000; /* all ones: infinite, or not a number */
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & exponent) == exponent;
    }
    return !bad;
}

/* What is written, where it is not the model's own. */
static const struct state_row *rows_of(const struct snapshot *s, int *rows)
{
    const struct state_row *own = model_state(s->model, rows);

    return s->state ? s->state : own;
}

int snapshot_check(const struct snapshot *s, struct err *err)
{
    const struct optim *o = s->optim;
    int rows;
    const struct state_row *row = rows_of(s, &rows);

    for (int i = 0; i < rows; i++)
        if (!row[i].tied && row[i].type == STATE_F32 &&
            !all_finite(row[i].data, row[i].bytes / sizeof(float)))
            return err_set(err, ERR_FATAL, "%s is not finite: try a lower --lr, or clip", row[i].name);
    if ((o->m && !all_finite(o->m, o->len)) || (o->v && !all_finite(o->v, o->len)))
        return err_set(err, ERR_FATAL, "the optimizer's state is not finite: try a lower --lr, or clip");
    return 0;
}

int snapshot_write(const struct snapshot *s, struct ckpt_writer *w, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const struct cursor *c = s->cursor;
    const struct pt_item trainer[] = {
        {pt_str("epoch"), pt_int(c->epoch)},
        {pt_str("consumed"), pt_int(c->consumed)},
        {pt_str("epoch_step"), pt_int(c->epoch_step)},
        {pt_str("step"), pt_int(c->step)},
        {pt_str("items"), pt_int(c->items)},
        {pt_str("step_samples"), pt_int(c->step_samples)},
        {pt_str("validated"), {.type = PT_BOOL, .b = c->validated}},
        {pt_str("sums"),
         pt_tensor((struct pt_tensor){.data = s->sums, .dtype = PT_F64, .dims = 1, .dim = {s->n_sums}})},
    };
    const struct pt_item more = {pt_str("trainer"), pt_dict(PT_DICT, trainer, ARRAY_LEN(trainer))};
    int rows;
    const struct state_row *row = rows_of(s, &rows);
    struct tensor_list list = state_dict_model(row, rows, false, &a); /* safetensors shares no storage */
    struct archive state = {state_dict_optim(s->optim, s->model, s->lr, &more, 1, &a), "state"};

    return ckpt_file(w, MODEL_SAFETENSORS, put_safetensors, &list, err) ||
                   ckpt_file(w, STATE_PT, put_pt, &state, err)
               ? -1
               : 0;
}

static int get_count(const struct pt_value *trainer, const char *key, int64_t min, int64_t *ret,
                     struct err *err)
{
    const struct pt_value *v = pt_find(trainer, key);

    if (!v || v->type != PT_INT || v->i < min || v->i > INT64_C(1) << 53)
        return err_set(err, ERR_INVALID, "trainer: %s: expected an integer from %lld", key, (long long)min);
    *ret = v->i;
    return 0;
}

/* Of another number of ranks each has what all had on average. */
static void get_sums(const struct pt_value *trainer, const struct snapshot *s)
{
    const struct pt_value *v = pt_find(trainer, "sums");
    const bool known =
        v && v->type == PT_TENSOR && v->tensor.dtype == PT_F64 && v->tensor.dims == 1 && v->tensor.dim[0] > 0;

    for (int i = 0; i < s->n_sums; i++) {
        const size_t at = known && v->tensor.dim[0] == s->n_sums ? (size_t)i : 0;
        s->sums[i] = NAN;
        if (known)
            memcpy(&s->sums[i], (const char *)v->tensor.data + at * sizeof(double), sizeof(double));
    }
}

static int get_cursor(const struct pt_value *root, struct cursor *ret, struct err *err)
{
    const struct pt_value *trainer = pt_find(root, "trainer");
    const struct pt_value *validated = pt_find(trainer, "validated");

    if (get_count(trainer, "epoch", 1, &ret->epoch, err) ||
        get_count(trainer, "consumed", 0, &ret->consumed, err) ||
        get_count(trainer, "epoch_step", 0, &ret->epoch_step, err) ||
        get_count(trainer, "step", 0, &ret->step, err))
        return -1;
    /* Older checkpoints lack these. */
    if ((pt_find(trainer, "items") && get_count(trainer, "items", 0, &ret->items, err)) ||
        (pt_find(trainer, "step_samples") && get_count(trainer, "step_samples", 0, &ret->step_samples, err)))
        return -1;
    if (!validated || validated->type != PT_BOOL)
        return err_set(err, ERR_INVALID, "trainer: validated: expected true or false");
    ret->validated = validated->b;
    return 0;
}

int snapshot_read(const struct snapshot *s, const char *path, const struct manifest *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    size_t numbers = model_len(s->model) * sizeof(float);
    cleanup_buf struct buf model = BUF_INIT(numbers + model_buffers_bytes(s->model) + NAMES_BYTES_MAX);
    cleanup_buf struct buf state = BUF_INIT(2 * numbers + NAMES_BYTES_MAX);
    struct tensor_list list;
    const struct pt_tensor **take;
    struct pt_value root;
    struct cursor cursor = {0};
    int rows;

    if (ckpt_read(path, m, MODEL_SAFETENSORS, &model, err) || ckpt_read(path, m, STATE_PT, &state, err))
        return -1;
    if (safetensors_parse(model.data, model.len, &a, &list, err) ||
        state_dict_match(&list, s->model, &a, &take, err))
        return err_wrap(err, "%s/%s", path, MODEL_SAFETENSORS);
    if (torch_zip_read(state.data, state.len, &a, &root, err) || get_cursor(&root, &cursor, err) ||
        state_dict_moments(&root, s->optim, s->model, false, err))
        return err_wrap(err, "%s/%s", path, STATE_PT);
    /* All is there: from here on nothing fails. */
    const struct state_row *row = model_state(s->model, &rows);
    for (int i = 0; i < rows; i++)
        if (take[i])
            memcpy(row[i].data, take[i]->data, row[i].bytes);
    *s->cursor = cursor;
    get_sums(pt_find(&root, "trainer"), s);
    s->optim->step = cursor.step;
    return state_dict_moments(&root, s->optim, s->model, true, err);
}
