/* classifier.c - fused classifier head: by blocks of rows the logits, softmax in place, and both products of the
 * gradients. */
#include "kernels/classifier.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/product.h"

#include <math.h>

enum {
    LOGITS_MAX = 1 << 24, /* of a block: 64 MiB */
    CLASSES = 4096        /* packed at a time */
};

static int block_rows(const struct linear_shape *s)
{
    int rows = LOGITS_MAX / s->out;

    rows = rows < 12 ? 12 : rows / 12 * 12;
    return rows < s->rows ? rows : s->rows;
}

int classifier_check(const struct linear_shape *s, struct err *err)
{
    if (check_range("classifier", "rows", s->rows, 1, INT32_MAX, err) < 0 ||
        check_range("classifier", "inputs", s->in, 1, INT32_MAX, err) < 0 ||
        check_range("classifier", "classes", s->out, 1, 1 << 24, err) < 0 ||
        check_elements("classifier", "input", (int[]){s->rows, s->in, 1, 1}, err) < 0)
        return -1;
    return check_elements("classifier", "weight", (int[]){s->out, s->in, 1, 1}, err);
}

struct job {
    const struct linear_shape *s;
    const struct isa_ops *ops;
    bool gradient;
    float share;
    int rows; /* of this block */
    const int32_t *labels;
    float *logits; /* (rows, O) */
    float *packed;
    double *loss;     /* (rows) */
    int32_t *correct; /* (rows) */
};

static void take(struct job *j, struct scratch *w, int panel)
{
    size_t rows = (size_t)block_rows(j->s);
    int classes = j->s->out < CLASSES ? j->s->out : CLASSES;

    j->logits = scratch_floats(w, rows * (size_t)j->s->out);
    j->packed = scratch_floats(w, product_scratch(classes, j->s->in, panel));
    j->loss = scratch_take(w, rows, sizeof(*j->loss));
    j->correct = scratch_offsets(w, rows);
}

size_t classifier_workspace_bytes(const struct linear_shape *s)
{
    struct job j = {.s = s};
    struct scratch w = {.counting = true};

    take(&j, &w, ISA_PANEL_MAX);
    return w.used_bytes;
}

static void loss_rows(void *arg, int begin, int end)
{
    const struct job *j = arg;
    const int classes = j->s->out;

    for (ptrdiff_t r = begin; r < end; r++) {
        float *x = j->logits + r * classes;
        int32_t label = j->labels[r];
        float mine = x[label];
        double sum;
        float most = j->ops->exp_row(x, classes, &sum);
        int32_t at = 0;
        /* The first of equals is the answer; e^0 is 1 to the bit. */
        while (mine == most && at < label && x[at] < 1.0F)
            at++;
        j->correct[r] = mine == most && at == label;
        j->loss[r] = log(sum) - ((double)mine - (double)most);
        if (!j->gradient)
            continue;
        j->ops->scale_row(x, (float)((double)j->share / sum), (size_t)classes);
        x[label] -= j->share;
    }
}

static void products(struct kctx *ctx, const struct job *j, const float *in, const float *weight)
{
    const struct linear_shape *s = j->s;

    for (int first = 0; first < s->out; first += CLASSES) {
        struct product p = {.a = in,
                            .a_row = s->in,
                            .a_step = 1,
                            .b = weight + (ptrdiff_t)first * s->in,
                            .b_row = s->in,
                            .c = j->logits + first,
                            .c_row = s->out,
                            .m = j->rows,
                            .n = s->out - first < CLASSES ? s->out - first : CLASSES,
                            .k = s->in};
        product_run(ctx, &p, j->packed);
    }
}

int cpu_classifier(struct kctx *ctx, const struct linear_shape *s, struct loss_result *result, void *din,
                   float *dweight, const void *in, const void *weight, const int32_t *labels, float share,
                   struct err *err)
{
    struct scratch w = scratch_open(ctx);
    struct job j = {.s = s, .ops = kctx_ops(ctx), .gradient = dweight, .share = share};
    struct loss_result sum = {0};

    for (int r = 0; r < s->rows; r++)
        if (labels[r] < 0 || labels[r] >= s->out)
            return err_set(err, ERR_INVALID, "classifier: the label of row %d is %d, expected 0..%d", r,
                           labels[r], s->out - 1);
    take(&j, &w, j.ops->panel);
    const int most = block_rows(s);
    for (ptrdiff_t first = 0; first < s->rows; first += most) {
        const float *x = (const float *)in + first * s->in;
        j.rows = s->rows - first < most ? (int)(s->rows - first) : most;
        j.labels = labels + first;
        products(ctx, &j, x, weight);
        kctx_run(ctx, j.rows, loss_rows, &j);
        if (dweight)
            product_gradients(ctx, &(struct linear_shape){.rows = j.rows, .in = s->in, .out = s->out},
                              (float *)din + first * s->in, dweight, first > 0, j.logits, x, weight);
        for (int r = 0; r < j.rows; r++) {
            sum.sum += j.loss[r];
            sum.correct += j.correct[r];
        }
    }
    *result = sum;
    return 0;
}
