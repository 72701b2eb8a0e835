/* fill.c - copy a weights file into a model: every tensor is found and checked before the first is copied. */
#include "trainer/state/weights/fill.h"

#include "host/rank_state.h"
#include "trainer/state/weights/gpt2_names.h"
#include "trainer/state/weights/numbers.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE = 1024 };

/* Where a row of the model comes from. */
struct take {
    const struct pt_tensor *from; /* NULL: a second name that the file does not have */
    bool turned;                  /* lies as (in, out) */
};

static const struct tensor_row *find(const struct tensor_list *list, const char *name)
{
    const struct tensor_row *by_bare_name = NULL;
    const char *bare = gpt2_names_bare(name);

    for (size_t i = 0; i < list->len; i++) {
        if (strcmp(list->row[i].name, name) == 0)
            return &list->row[i];
        if (strcmp(gpt2_names_bare(list->row[i].name), bare) == 0)
            by_bare_name = &list->row[i];
    }
    return by_bare_name;
}

static void shape_text(int32_t dims, const int64_t *dim, char *out, size_t size)
{
    int at = snprintf(out, size, "(");

    for (int32_t i = 0; i < dims && at < (int)size; i++)
        at += snprintf(out + at, size - (size_t)at, "%s%" PRId64, i ? ", " : "", dim[i]);
    if (at < (int)size)
        snprintf(out + at, size - (size_t)at, ")");
}

static bool is_positions(const char *name)
{
    return strcmp(gpt2_names_bare(name), "wpe.weight") == 0;
}

static int check(const struct state_row *row, const struct pt_tensor *t, bool turned, struct err *err)
{
    int64_t want[PT_DIMS_MAX] = {0};
    char has[96], expected[96];
    bool same = t->dims == row->dims;

    if (row->type == STATE_I64 ? t->dtype != PT_I64 : !numbers_are_floats(t->dtype))
        return err_set(err, ERR_INVALID, "%s: %s, expected %s", row->name, pt_dtype_name(t->dtype),
                       row->type == STATE_I64 ? "I64" : "F32, F16, BF16 or F64");
    for (int32_t i = 0; i < row->dims; i++)
        want[i] = row->dim[turned ? 1 - i : i];
    for (int32_t i = 0; same && i < t->dims; i++)
        same = t->dim[i] == want[i] || (i == 0 && is_positions(row->name) && t->dim[0] > want[0]);
    if (same)
        return 0;
    shape_text(t->dims, t->dim, has, sizeof(has));
    shape_text(row->dims, want, expected, sizeof(expected));
    return err_set(err, ERR_INVALID, "%s: %s, but the model's is %s", row->name, has, expected);
}

/* Two names of one matrix in the model must be one in the file. */
static int check_tied(const struct state_row *row, int i, const struct take *take, struct err *err)
{
    int first = 0;

    while (first < i && row[first].data != row[i].data)
        first++;
    return numbers_equal(take[first].from, take[i].from)
               ? 0
               : err_set(err, ERR_INVALID, "%s: differs from %s, but the model shares one tensor for both",
                         row[i].name, row[first].name);
}

static int choose(const struct tensor_list *list, const struct state_row *row, int rows, bool *used,
                  struct take *take, struct err *err)
{
    bool turned = gpt2_names_transposed(list);

    for (int i = 0; i < rows; i++) {
        const struct tensor_row *t = find(list, row[i].name);
        if (!t && row[i].tied)
            continue;
        if (!t)
            return err_set(err, ERR_INVALID, "%s: is missing", row[i].name);
        take[i] = (struct take){&t->tensor, turned && row[i].dims == 2 && gpt2_names_is_matrix(row[i].name)};
        used[t - list->row] = true;
        if (check(&row[i], take[i].from, take[i].turned, err) ||
            (row[i].tied && check_tied(row, i, take, err)))
            return -1;
    }
    for (size_t i = 0; i < list->len; i++)
        if (!used[i] && numbers_are_floats(list->row[i].tensor.dtype) &&
            !gpt2_names_is_mask(list->row[i].name))
            return err_set(err, ERR_INVALID, "%.100s: the model has no such tensor", list->row[i].name);
    return 0;
}

/* The file's (in, out) into (out, in). */
static void copy_turned(const struct pt_tensor *t, float *out)
{
    const size_t in = (size_t)t->dim[0];
    const size_t width = (size_t)t->dim[1];
    float piece[PIECE];

    for (size_t i = 0; i < in; i++)
        for (size_t first = 0; first < width; first += PIECE) {
            size_t n = width - first < PIECE ? width - first : PIECE;
            numbers_to_f32(t->data, t->dtype, i * width + first, n, piece);
            for (size_t k = 0; k < n; k++)
                out[(first + k) * in + i] = piece[k];
        }
}

int fill_model(const struct weights *w, struct model *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    int rows;
    const struct state_row *row = model_state(m, &rows);
    struct take *take = arena_array(&a, (size_t)rows + 1, struct take);
    bool *used = arena_array(&a, w->list.len + 1, bool);

    if (choose(&w->list, row, rows, used, take, err))
        return -1;
    for (int i = 0; i < rows; i++) {
        rank_state_alive(); /* the file is mapped: this is where it is read */
        if (row[i].tied)
            continue;
        if (row[i].type == STATE_I64)
            memcpy(row[i].data, take[i].from->data, row[i].bytes);
        else if (take[i].turned)
            copy_turned(take[i].from, row[i].data);
        else
            numbers_to_f32(take[i].from->data, take[i].from->dtype, 0, row[i].bytes / sizeof(float),
                           row[i].data);
    }
    return 0;
}
