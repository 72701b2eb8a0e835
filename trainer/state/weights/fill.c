/* fill.c - find and check a file's tensors by name, then copy them into a model. */
#include "trainer/state/weights/fill.h"

#include "host/rank_state.h"
#include "trainer/state/weights/numbers.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE = 1024 };

static const char *bare_name(const char *name)
{
    static const char *const before[] = {"module.", "_orig_mod.", "transformer."};

    for (size_t i = 0; i < ARRAY_LEN(before);) {
        const size_t len = strlen(before[i]);
        const bool there = strncmp(name, before[i], len) == 0;
        name += there ? len : 0;
        i = there ? 0 : i + 1; /* in any order */
    }
    return name;
}

/* Find a tensor by its name, else by the name without wrappers' prefixes. *twice: there are two. */
static const struct tensor_row *find(const struct tensor_list *list, const char *name, bool *twice)
{
    const struct tensor_row *found = NULL;

    *twice = false;
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->row[i].name, name) == 0)
            return &list->row[i];
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(bare_name(list->row[i].name), bare_name(name)) == 0) {
            *twice = found != NULL;
            found = &list->row[i];
        }
    return found;
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
    return strcmp(bare_name(name), "wpe.weight") == 0;
}

static int check(const struct state_row *row, const struct pt_tensor *t, bool transposed, struct err *err)
{
    int64_t want[PT_DIMS_MAX] = {0};
    char has[96], expected[96];
    bool same = t->dims == row->dims;

    if (row->type == STATE_I64 ? t->dtype != PT_I64 : !numbers_are_floats(t->dtype))
        return err_set(err, ERR_INVALID, "%s: %s, expected %s", row->name, pt_dtype_name(t->dtype),
                       row->type == STATE_I64 ? "I64" : "F32, F16, BF16 or F64");
    for (int32_t i = 0; i < row->dims; i++)
        want[i] = row->dim[transposed ? 1 - i : i];
    for (int32_t i = 0; same && i < t->dims; i++)
        same = t->dim[i] == want[i] || (i == 0 && is_positions(row->name) && t->dim[0] > want[0]);
    if (same)
        return 0;
    shape_text(t->dims, t->dim, has, sizeof(has));
    shape_text(row->dims, want, expected, sizeof(expected));
    return err_set(err, ERR_INVALID, "%s: %s, but the model's is %s", row->name, has, expected);
}

/* Two names of one matrix in the model must be one in the file. */
static int check_tied(const struct state_row *row, int i, const struct fill_source *from, struct err *err)
{
    int first = 0;

    while (first < i && row[first].data != row[i].data)
        first++;
    return numbers_equal(from[first].from, from[i].from)
               ? 0
               : err_set(err, ERR_INVALID, "%s: differs from %s, but the model shares one tensor for both",
                         row[i].name, row[first].name);
}

/* Whether the file has matrices of GPT-2's blocks as (in, out): decided by one that is not square. */
static bool are_transposed(const struct tensor_list *list, const struct state_row *row, int rows)
{
    bool ignored;

    for (int i = 0; i < rows; i++) {
        if (!row[i].transposed || row[i].dim[0] == row[i].dim[1])
            continue;
        const struct tensor_row *t = find(list, row[i].name, &ignored);
        if (t && t->tensor.dims == 2)
            return t->tensor.dim[0] == row[i].dim[1];
    }
    return true;
}

int fill_find(const struct tensor_list *list, const struct model *m, struct arena *a,
              struct fill_source **ret, struct err *err)
{
    const struct state_row *row = m->state;
    struct fill_source *from = arena_array(a, (size_t)m->states + 1, struct fill_source);
    const bool transposed = are_transposed(list, row, m->states);

    for (int i = 0; i < m->states; i++) {
        bool twice;
        const struct tensor_row *t = find(list, row[i].name, &twice);
        if (!t && row[i].tied)
            continue;
        if (!t || twice)
            return err_set(err, ERR_INVALID, "%s: %s", row[i].name,
                           t ? "there are two tensors of this name behind prefixes" : "is missing");
        from[i] = (struct fill_source){&t->tensor, transposed && row[i].transposed};
        if (check(&row[i], from[i].from, from[i].transposed, err) ||
            (row[i].tied && check_tied(row, i, from, err)))
            return -1;
    }
    *ret = from;
    return 0;
}

/* Copy an (in, out) matrix as (out, in). */
static void copy_transposed(const struct pt_tensor *t, float *out)
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

void fill_copy(const struct fill_source *from, struct model *m)
{
    const struct state_row *row = m->state;

    for (int i = 0; i < m->states; i++) {
        rank_state_alive(); /* copying reads the mapped file */
        if (row[i].tied)
            continue;
        if (row[i].type == STATE_I64)
            memcpy(row[i].data, from[i].from->data, row[i].bytes);
        else if (from[i].transposed)
            copy_transposed(from[i].from, row[i].data);
        else
            numbers_to_f32(from[i].from->data, from[i].from->dtype, 0, row[i].bytes / sizeof(float),
                           row[i].data);
    }
}
