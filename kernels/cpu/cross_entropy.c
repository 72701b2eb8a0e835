/* cross_entropy.c - cross entropy row by row in one thread, so that the sum of the loss has a fixed order. */
#include "kernels/cross_entropy.h"
#include "kernels/cpu/ops.h"

#include <math.h>

/* Where the row's first largest value is; a NaN counts as largest. */
static int first_largest(const float *x, int n)
{
    int best = 0;
    for (int c = 1; c < n; c++) {
        if (x[c] > x[best] || (isnan(x[c]) && !isnan(x[best])))
            best = c;
    }
    return best;
}

/* Returns the row's loss; d, when not NULL, gets the gradient of loss / rows. */
static double one_row(float *d, const float *x, int label, int top, int rows, int classes, double smoothing)
{
    float most = x[top];
    double mine = (double)x[label] - (double)most;
    double sum = 0;
    double all = 0;
    for (int c = 0; c < classes; c++) {
        float e = expf(x[c] - most);
        sum += (double)e;
        all += (double)x[c] - (double)most;
        if (d)
            d[c] = e;
    }
    double scale = 1 / (sum * rows);
    double share = smoothing / classes;
    double other = share / rows;
    double own = (1 - smoothing + share) / rows;
    for (int c = 0; d && c < classes; c++) {
        double p = (double)d[c] * scale;
        d[c] = (float)(p - (c == label ? own : other));
    }
    return log(sum) - (smoothing > 0 ? (1 - smoothing) * mine + share * all : mine);
}

int cpu_cross_entropy(struct kctx *ctx, struct loss_result *result, float *dlogits, const float *logits,
                      const int32_t *labels, int rows, int classes, double smoothing, struct err *err)
{
    (void)ctx;
    for (int r = 0; r < rows; r++) {
        if (labels[r] < 0 || labels[r] >= classes)
            return err_set(err, ERR_INVALID, "cross_entropy: the label of row %d is %d, expected 0..%d", r,
                           labels[r], classes - 1);
    }
    struct loss_result sum = {0};
    for (ptrdiff_t r = 0; r < rows; r++) {
        const float *x = logits + r * classes;
        float *d = dlogits ? dlogits + r * classes : NULL;
        int top = first_largest(x, classes);
        sum.correct += top == labels[r];
        sum.sum += one_row(d, x, labels[r], top, rows, classes, smoothing);
    }
    *result = sum;
    return 0;
}
