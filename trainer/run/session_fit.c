/* session_fit.c - check that data, model and options fit each other before the first step. */
#include "trainer/run/session.h"

/* Whether the data's input can be the model's without conversion: the same shape, or a vector for pixels of
 * one channel. */
static bool same_input(const struct shape *in, const struct data_layout *l)
{
    if (in->rows == l->rows && in->cols == l->cols && in->channels == l->channels)
        return true;
    bool vector = l->rows == 1 && l->cols == 1;
    return shape_len(in) == layout_input_len(l) &&
           (vector ? in->channels == 1 : in->flat && l->channels == 1);
}

static int check_targets(const struct session *s, const struct data_layout *l, struct err *err)
{
    struct shape out = s->pipeline.output;

    if (l->values && l->values != out.channels)
        return err_set(err, ERR_INVALID, "model: %d outputs, but a target of the data has %d values",
                       out.channels, l->values);
    if ((out.sequence ? out.rows : 0) != l->steps)
        return err_set(err, ERR_INVALID, "model: outputs for %d steps, but a target of the data has %d",
                       out.sequence ? out.rows : 1, l->steps ? l->steps : 1);
    if (model_has_head(s->model) && s->cfg->loss.label_smoothing > 0)
        return err_set(err, ERR_INVALID,
                       "loss: label_smoothing: %g, expected 0 for a model that ends in lm_head",
                       s->cfg->loss.label_smoothing);
    if (!l->values && out.channels < l->classes)
        return err_set(err, ERR_INVALID, "model: %d outputs, expected at least one per class (%d)",
                       out.channels, l->classes);
    return 0;
}

int session_check_fit(const struct session *s, struct err *err)
{
    const struct data_layout *l = &s->data.set.layout;
    const struct shape *in = &s->cfg->model.input;
    const struct data_spec *d = &s->cfg->data;

    if (in->sequence && !l->steps) /* an embedding aborts on token numbers that were not checked */
        return err_set(err, ERR_INVALID, "model.input: tokens, expected data: {format: tokens, ...}");
    if (!same_input(in, l))
        return err_set(err, ERR_INVALID, "model.input: %dx%dx%d, but the images are %dx%dx%d", in->rows,
                       in->cols, in->channels, l->rows, l->cols, l->channels);
    if (d->stats != 1 && d->stats != l->channels)
        return err_set(err, ERR_INVALID, "data: mean and std of %d channels, expected 1 or %d", d->stats,
                       l->channels);
    if (s->cfg->eval_only && !l->test_items)
        return err_set(err, ERR_INVALID, "--eval_only: this data set has no test data");
    return check_targets(s, l, err);
}
