/* snapshot.c - write a run's state as the files of a checkpoint, and read it back. */
#include "trainer/state/snapshot.h"

#include "trainer/model/gpt2.h"
#include "trainer/state/files/safetensors.h"
#include "trainer/state/state_dict.h"
#include "trainer/state/weights/fill.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char MODEL[] = "model.safetensors";
static const char OPTIM[] = "optim.safetensors";
enum { NAMES_BYTES_MAX = 64 << 20 }; /* limit of a file's size beyond its numbers */

static int put_safetensors(void *ctx, const struct pt_sink *sink, struct err *err)
{
    return safetensors_write(ctx, sink, err);
}

/* Write the config.json for Hugging Face's GPT2LMHeadModel. With another vocabulary than GPT-2's, there is no
 * end-of-text token. */
static int put_config(void *ctx, const struct pt_sink *sink, struct err *err)
{
    enum { END_OF_TEXT = 50256 };
    const struct gpt2_spec *g = ctx;
    char text[1024];
    char end[24] = "null";

    if (g->vocab > END_OF_TEXT)
        snprintf(end, sizeof(end), "%d", END_OF_TEXT);
    const int len = snprintf(
        text, sizeof(text),
        "{\n  \"architectures\": [\"GPT2LMHeadModel\"],\n  \"model_type\": \"gpt2\",\n  \"vocab_size\": "
        "%lld,\n"
        "  \"n_positions\": %lld,\n  \"n_embd\": %lld,\n  \"n_layer\": %lld,\n  \"n_head\": %lld,\n"
        "  \"activation_function\": \"gelu_new\",\n  \"layer_norm_epsilon\": %g,\n  \"resid_pdrop\": 0.0,\n"
        "  \"embd_pdrop\": 0.0,\n  \"attn_pdrop\": 0.0,\n  \"tie_word_embeddings\": true,\n"
        "  \"bos_token_id\": %s,\n  \"eos_token_id\": %s,\n  \"torch_dtype\": \"float32\"\n}\n",
        (long long)g->vocab, (long long)g->block_size, (long long)g->n_embd, (long long)g->n_layer,
        (long long)g->n_head, GPT2_EPS, end, end);

    return sink->write(sink->ctx, text, (size_t)len, err);
}

static bool all_finite(const float *x, size_t n)
{
    const uint32_t exponent = 0x7f800000; /* exponent all ones: infinite or NaN */
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & exponent) == exponent;
    }
    return !bad;
}

/* The rows to write. */
static const struct state_row *rows_of(const struct snapshot *s, struct arena *a)
{
    const struct state_row *own = s->model->state;

    if (!s->values)
        return own;
    struct state_row *row = arena_array(a, (size_t)s->model->states, struct state_row);
    for (int i = 0; i < s->model->states; i++) {
        const char *data = own[i].data;
        row[i] = own[i];
        row[i].data = own[i].buffer ? s->buffers + (data - (const char *)s->model->buffers)
                                    : s->values + (data - (const char *)s->model->values);
    }
    return row;
}

int snapshot_check(const struct snapshot *s, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const struct optim *o = s->optim;
    const struct state_row *row = rows_of(s, &a);

    for (int i = 0; i < s->model->states; i++)
        if (!row[i].tied && row[i].type == STATE_F32 &&
            !all_finite(row[i].data, row[i].bytes / sizeof(float)))
            return err_set(err, ERR_FATAL, "%s is not finite: try a lower --lr, or clip", row[i].name);
    if ((o->m && !all_finite(o->m, o->len)) || (o->v && !all_finite(o->v, o->len)))
        return err_set(err, ERR_FATAL, "the optimizer's state is not finite: try a lower --lr, or clip");
    return 0;
}

/* The cursor's fields in the file. */
static const struct count {
    const char *name;
    size_t at; /* offset in struct cursor */
    int64_t min;
} COUNT[] = {
    {"trainer.epoch", offsetof(struct cursor, epoch), 1},
    {"trainer.consumed", offsetof(struct cursor, consumed), 0},
    {"trainer.epoch_step", offsetof(struct cursor, epoch_step), 0},
    {"trainer.step", offsetof(struct cursor, step), 0},
    {"trainer.items", offsetof(struct cursor, items), 1},
    {"trainer.step_samples", offsetof(struct cursor, step_samples), 1},
    {"trainer.validated", offsetof(struct cursor, validated), 0},
};
static const char SUMS[] = "trainer.sums";

/* The tensors of optim.safetensors. The sums, one per rank, are included only for writing. */
static struct tensor_list optim_rows(const struct snapshot *s, bool sums, struct arena *a)
{
    struct tensor_row more[ARRAY_LEN(COUNT) + 1];

    for (size_t i = 0; i < ARRAY_LEN(COUNT); i++)
        more[i] =
            (struct tensor_row){.name = COUNT[i].name,
                                .tensor = {.data = (const char *)s->cursor + COUNT[i].at, .dtype = PT_I64}};
    more[ARRAY_LEN(COUNT)] = (struct tensor_row){
        .name = SUMS, .tensor = {.data = s->sums, .dtype = PT_F64, .dims = 1, .dim = {s->n_sums}}};
    return state_dict_optim(s->optim, s->model, &(struct tensor_list){more, ARRAY_LEN(COUNT) + sums}, a);
}

int snapshot_write(const struct snapshot *s, struct ckpt_writer *w, struct err *err)
{
    cleanup_arena struct arena a = {0};
    const int states = s->model->states;
    struct tensor_list model = state_dict_model(rows_of(s, &a), states, STATE_DICT_SAFETENSORS, &a);
    struct tensor_list optim = optim_rows(s, true, &a);
    struct gpt2_spec gpt2 = s->model->spec->gpt2;

    return ckpt_file(w, MODEL, put_safetensors, &model, err) ||
                   (gpt2.vocab && ckpt_file(w, "config.json", put_config, &gpt2, err)) ||
                   ckpt_file(w, OPTIM, put_safetensors, &optim, err)
               ? -1
               : 0;
}

static int check_numbers(const struct tensor_list *list, struct err *err)
{
    const struct pt_tensor *sums = state_dict_find(list, SUMS);
    int64_t v;

    for (size_t i = 0; i < ARRAY_LEN(COUNT); i++) {
        memcpy(&v, state_dict_find(list, COUNT[i].name)->data, sizeof(v));
        if (v < COUNT[i].min || v > INT64_C(1) << 53)
            return err_set(err, ERR_INVALID, "%s: expected an integer from %lld", COUNT[i].name,
                           (long long)COUNT[i].min);
    }
    if (!sums || sums->dtype != PT_F64 || sums->dims != 1 || sums->dim[0] < 1)
        return err_set(err, ERR_INVALID, "%s: expected a list of numbers", SUMS);
    return 0;
}

/* If the number of ranks differs, each rank gets the mean. */
static void copy_sums(const struct tensor_list *list, const struct snapshot *s)
{
    const struct pt_tensor *t = state_dict_find(list, SUMS);

    for (int i = 0; i < s->n_sums; i++) {
        const size_t at = t->dim[0] == s->n_sums ? (size_t)i : 0;
        memcpy(&s->sums[i], (const char *)t->data + at * sizeof(double), sizeof(double));
    }
}

/* The file must have exactly the model's tensors: additional ones would be lost. */
static int find_model(const struct tensor_list *list, const struct model *m, struct arena *a,
                      struct fill_source **ret, struct err *err)
{
    size_t n = 0;

    for (int i = 0; i < m->states; i++)
        n += !m->state[i].tied;
    return list->len == n ? fill_find(list, m, a, ret, err)
                          : err_set(err, ERR_INVALID, "%zu tensors, but the model has %zu", list->len, n);
}

int snapshot_read(const struct snapshot *s, const char *path, const struct manifest *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    size_t numbers = s->model->len * sizeof(float);
    cleanup_buf struct buf model = BUF_INIT(numbers + s->model->buffers_bytes + NAMES_BYTES_MAX);
    cleanup_buf struct buf optim = BUF_INIT(2 * numbers + NAMES_BYTES_MAX);
    struct tensor_list tensors, state;
    const struct tensor_list want = optim_rows(s, false, &a);
    struct fill_source *from;

    if (ckpt_read(path, m, MODEL, &model, err) || ckpt_read(path, m, OPTIM, &optim, err))
        return -1;
    if (safetensors_parse(model.data, model.len, &a, &tensors, err) ||
        find_model(&tensors, s->model, &a, &from, err))
        return err_wrap(err, "%s/%s", path, MODEL);
    if (safetensors_parse(optim.data, optim.len, &a, &state, err) || state_dict_check(&want, &state, err) ||
        check_numbers(&state, err))
        return err_wrap(err, "%s/%s", path, OPTIM);
    /* All tensors are found: from here on nothing fails. */
    fill_copy(from, s->model);
    state_dict_copy(&want, &state);
    copy_sums(&state, s);
    s->optim->step = s->cursor->step;
    return 0;
}
