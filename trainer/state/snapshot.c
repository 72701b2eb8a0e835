/* snapshot.c - write a run's state as the files of a checkpoint, and read it back. */
#include "trainer/state/snapshot.h"

#include "trainer/model/gpt2.h"
#include "trainer/state/files/safetensors.h"
#include "trainer/state/state_dict.h"
#include "trainer/state/weights/fill.h"

#include <stdio.h>
#include <string.h>

static const char MODEL[] = "model.safetensors";
static const char OPTIM[] = "optim.safetensors";
enum { NAMES_BYTES_MAX = 64 << 20 }; /* of a file, beyond its numbers */

static int put_safetensors(void *ctx, const struct pt_sink *sink, struct err *err)
{
    return safetensors_write(ctx, sink, err);
}

/* What Hugging Face's GPT2LMHeadModel is made from. Without GPT-2's own vocabulary no token is the end of a text. */
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

/* The cursor as numbers, to write and to read. */
enum { COUNTS = 7 };

struct count {
    const char *name;
    int64_t min, value;
};

static void counts_of(const struct cursor *c, struct count out[static COUNTS])
{
    const struct count all[COUNTS] = {
        {"trainer.epoch", 1, c->epoch},           {"trainer.consumed", 0, c->consumed},
        {"trainer.epoch_step", 0, c->epoch_step}, {"trainer.step", 0, c->step},
        {"trainer.items", 1, c->items},           {"trainer.step_samples", 1, c->step_samples},
        {"trainer.validated", 0, c->validated},
    };

    memcpy(out, all, sizeof(all));
}

static const char SUMS[] = "trainer.sums";

int snapshot_write(const struct snapshot *s, struct ckpt_writer *w, struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct count count[COUNTS];
    int rows;
    const struct state_row *row = rows_of(s, &rows);
    struct tensor_list model = state_dict_safetensors(row, rows, &a);
    struct tensor_row trainer[COUNTS + 1];

    counts_of(s->cursor, count);
    for (int i = 0; i < COUNTS; i++)
        trainer[i] =
            (struct tensor_row){.name = count[i].name, .tensor = {.data = &count[i].value, .dtype = PT_I64}};
    trainer[COUNTS] = (struct tensor_row){
        .name = SUMS, .tensor = {.data = s->sums, .dtype = PT_F64, .dims = 1, .dim = {s->n_sums}}};
    struct tensor_list optim =
        state_dict_optim(s->optim, s->model, &(struct tensor_list){trainer, COUNTS + 1}, &a);
    struct gpt2_spec gpt2;

    return ckpt_file(w, MODEL, put_safetensors, &model, err) ||
                   (gpt2_of(model_spec_of(s->model), &gpt2) &&
                    ckpt_file(w, "config.json", put_config, &gpt2, err)) ||
                   ckpt_file(w, OPTIM, put_safetensors, &optim, err)
               ? -1
               : 0;
}

static int get_count(const struct tensor_list *list, struct count *c, struct err *err)
{
    const struct pt_tensor *t = state_dict_find(list, c->name);

    c->value = -1;
    if (t && t->dtype == PT_I64 && !t->dims)
        memcpy(&c->value, t->data, sizeof(c->value));
    if (c->value < c->min || c->value > INT64_C(1) << 53)
        return err_set(err, ERR_INVALID, "%s: expected an integer from %lld", c->name, (long long)c->min);
    return 0;
}

static int get_cursor(const struct tensor_list *list, struct cursor *ret, struct err *err)
{
    struct count c[COUNTS];

    counts_of(ret, c);
    for (int i = 0; i < COUNTS; i++)
        if (get_count(list, &c[i], err))
            return -1;
    *ret = (struct cursor){.epoch = c[0].value,
                           .consumed = c[1].value,
                           .epoch_step = c[2].value,
                           .step = c[3].value,
                           .items = c[4].value,
                           .step_samples = c[5].value,
                           .validated = c[6].value};
    return 0;
}

/* Of another number of ranks each has what all had on average. */
static int get_sums(const struct tensor_list *list, const struct snapshot *s, bool apply, struct err *err)
{
    const struct pt_tensor *t = state_dict_find(list, SUMS);

    if (!t || t->dtype != PT_F64 || t->dims != 1 || t->dim[0] < 1)
        return err_set(err, ERR_INVALID, "%s: expected a list of numbers", SUMS);
    for (int i = 0; apply && i < s->n_sums; i++) {
        const size_t at = t->dim[0] == s->n_sums ? (size_t)i : 0;
        memcpy(&s->sums[i], (const char *)t->data + at * sizeof(double), sizeof(double));
    }
    return 0;
}

/* All of the model and nothing else: of a larger one the rest would be lost. */
static int find_model(const struct tensor_list *list, const struct model *m, struct arena *a,
                      struct fill_source **ret, struct err *err)
{
    int rows;
    const struct state_row *row = model_state(m, &rows);
    size_t n = 0;

    for (int i = 0; i < rows; i++)
        n += !row[i].tied;
    return list->len == n ? fill_find(list, m, a, ret, err)
                          : err_set(err, ERR_INVALID, "%zu tensors, but the model has %zu", list->len, n);
}

int snapshot_read(const struct snapshot *s, const char *path, const struct manifest *m, struct err *err)
{
    cleanup_arena struct arena a = {0};
    size_t numbers = model_len(s->model) * sizeof(float);
    cleanup_buf struct buf model = BUF_INIT(numbers + model_buffers_bytes(s->model) + NAMES_BYTES_MAX);
    cleanup_buf struct buf optim = BUF_INIT(2 * numbers + NAMES_BYTES_MAX);
    struct tensor_list list, moments;
    struct fill_source *from;
    struct cursor cursor = {0};

    if (ckpt_read(path, m, MODEL, &model, err) || ckpt_read(path, m, OPTIM, &optim, err))
        return -1;
    if (safetensors_parse(model.data, model.len, &a, &list, err) ||
        find_model(&list, s->model, &a, &from, err))
        return err_wrap(err, "%s/%s", path, MODEL);
    if (safetensors_parse(optim.data, optim.len, &a, &moments, err) || get_cursor(&moments, &cursor, err) ||
        get_sums(&moments, s, false, err) || state_dict_moments(&moments, s->optim, s->model, false, err))
        return err_wrap(err, "%s/%s", path, OPTIM);
    /* All is there: from here on nothing fails. */
    fill_copy(from, s->model);
    *s->cursor = cursor;
    s->optim->step = cursor.step;
    return get_sums(&moments, s, true, err) || state_dict_moments(&moments, s->optim, s->model, true, err)
               ? -1
               : 0;
}
