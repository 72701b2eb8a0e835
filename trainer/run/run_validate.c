/* run_validate.c - validate between steps, and report the speed of training. */
#include "trainer/run/run_epoch.h"

#include "host/rank_state.h"
#include "trainer/run/evaluate.h"

#include <math.h>

/* With tokens, the test files are the validation set. */
static bool has_val_files(const struct session *s)
{
    return s->data.set.layout.steps && s->data.set.test.items;
}

int64_t run_part_of(const struct session *s, bool test, struct feed *ret)
{
    const struct config *cfg = s->cfg;
    const struct dataset *set = &s->data.set;
    const int64_t most = cfg->val_steps * cfg->batch_size * s->pipeline.at.replicas;
    const bool files = test || has_val_files(s);
    const int64_t items = files ? set->test.items : s->split.second_items;

    feed_init(ret, set, files, files ? NULL : s->split.second, &cfg->data);
    ret->vocab = s->pipeline.output.channels;
    return !test && most && items > most ? most : items;
}

bool run_validates_now(const struct session *s, int64_t steps)
{
    const struct cursor *c = &s->cursor;
    const int64_t every = s->cfg->val_every;

    /* After an epoch's last step validation always runs. */
    return every && c->epoch_step < steps && (c->step % every == 0 || c->step == s->cfg->max_steps);
}

int run_check_loss(const struct session *s, const char *part, double loss, struct err *err)
{
    if (isfinite(loss))
        return 0;
    return err_set(err, ERR_FATAL, "the %s loss is %s behind step %lld%s", part,
                   isinf(loss) ? "infinite" : "not a number", (long long)s->cursor.step,
                   s->cfg->eval_only ? "" : ": try a lower --lr");
}

int run_validate(struct session *s, uint32_t *stop, struct err *err)
{
    struct feed f;
    const int64_t items = run_part_of(s, false, &f);
    struct evaluate_result r;
    int64_t start = session_now_ms(s);

    if (!items)
        return 0;
    const enum rank_phase was = rank_state_phase(s->slot, RANK_VALIDATING);
    if (evaluate(&s->train, &f, items, &r, err))
        return -1;
    rank_state_phase(s->slot, was);
    *stop = r.stop;
    if (r.stop) {
        run_print_stop(s, r.stop, "validation");
        return 0;
    }
    if (run_check_loss(s, "validation", r.loss, err))
        return -1;
    report_val(s->report, s->cursor.epoch, s->cursor.epoch_step, r.loss, r.accuracy);
    s->times.val_s += session_seconds_since(s, start);
    return 0;
}

void run_report_speed(struct session *s)
{
    const struct cursor *c = &s->cursor;
    const double tokens_per_step =
        (double)s->data.set.layout.steps * (double)s->cfg->batch_size * s->pipeline.at.replicas;
    int64_t now = session_now_ms(s);
    double seconds = (double)(now - s->speed.ms) / 1000 - (s->times.val_s - s->speed.val_s);
    struct report_speed r = {.lr = s->lr, .grad_norm = s->optim.grad_norm, .tokens_per_s = NAN};

    if (!s->data.set.layout.steps || !s->report)
        return;
    if (s->speed.ms && seconds > 0)
        r.tokens_per_s = (double)(c->step - s->speed.step) * tokens_per_step / seconds;
    report_speed(s->report, c->epoch_step, &r);
    s->speed = (struct session_speed){.ms = now, .step = c->step, .val_s = s->times.val_s};
}
