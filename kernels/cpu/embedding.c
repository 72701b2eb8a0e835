/* embedding.c - token and position embedding: forward by rows; gradients by blocks of channels over all rows in order. */
#include "kernels/embedding.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/run.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 64 };

int embedding_check(const struct embedding_shape *s, struct err *err)
{
    const char *op = "embedding";
    if (check_range(op, "batch", s->batch, 1, INT32_MAX, err) < 0 ||
        check_range(op, "time", s->time, 1, INT32_MAX, err) < 0 ||
        check_range(op, "vocabulary", s->vocab, 1, EMBEDDING_VOCAB_MAX, err) < 0 ||
        check_range(op, "channels", s->channels, 1, INT32_MAX, err) < 0 ||
        check_elements(op, "output", (int[]){s->batch, s->time, s->channels, 1}, err) < 0 ||
        check_elements(op, "table", (int[]){s->vocab, s->channels, 1, 1}, err) < 0)
        return -1;
    return 0;
}

struct job {
    const struct embedding_shape *s;
    const struct isa_ops *ops;
    float *out, *dtable, *dpositions;
    const float *tokens, *table, *positions, *dout;
    bool add;
};

static ptrdiff_t token_at(const struct job *j, ptrdiff_t row)
{
    float t = j->tokens[row];

    if (!(t >= 0 && t < (float)j->s->vocab))
        abort(); /* reading on would leave the table */
    return (ptrdiff_t)t;
}

static void forward_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const ptrdiff_t c = j->s->channels;

    for (ptrdiff_t r = begin; r < end; r++)
        j->ops->add(j->out + r * c, j->table + token_at(j, r) * c, j->positions + r % j->s->time * c,
                    (size_t)c);
}

void cpu_embedding_forward(struct kctx *ctx, const struct embedding_shape *s, void *out, const float *tokens,
                           const void *table, const void *positions)
{
    struct job j = {
        .s = s, .ops = kctx_ops(ctx), .out = out, .tokens = tokens, .table = table, .positions = positions};

    kctx_run(ctx, s->batch * s->time, forward_rows, &j);
}

static void backward_columns(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const struct embedding_shape *s = j->s;
    const ptrdiff_t c = s->channels;
    const ptrdiff_t first = (ptrdiff_t)begin * COLUMNS;
    const size_t n = (size_t)((end * COLUMNS < c ? end * COLUMNS : c) - first);

    for (ptrdiff_t v = 0; v < s->vocab && !j->add; v++)
        memset(j->dtable + v * c + first, 0, n * sizeof(float));
    for (ptrdiff_t t = 0; t < s->time; t++)
        memcpy(j->dpositions + t * c + first, j->dout + t * c + first, n * sizeof(float));
    for (ptrdiff_t r = 0; r < (ptrdiff_t)s->batch * s->time; r++) {
        float *to = j->dtable + token_at(j, r) * c + first;
        float *position = j->dpositions + r % s->time * c + first;
        const float *more = j->dout + r * c + first;
        j->ops->add(to, to, more, n);
        if (r >= s->time)
            j->ops->add(position, position, more, n);
    }
}

void cpu_embedding_backward(struct kctx *ctx, const struct embedding_shape *s, bool add, float *dtable,
                            float *dpositions, const void *dout, const float *tokens)
{
    struct job j = {.s = s,
                    .ops = kctx_ops(ctx),
                    .dtable = dtable,
                    .dpositions = dpositions,
                    .dout = dout,
                    .tokens = tokens,
                    .add = add};

    kctx_run(ctx, (s->channels + COLUMNS - 1) / COLUMNS, backward_columns, &j);
}
