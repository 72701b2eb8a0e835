/* choice.c - the context once, then each ending on top of it. */
#include "trainer/generate/choice.h"

#include <math.h>

/* Of the class among the logits. */
static double log_probability(const float *logits, int classes, int class)
{
    float most = logits[0];
    double sum = 0;

    for (int i = 1; i < classes; i++)
        most = logits[i] > most ? logits[i] : most;
    for (int i = 0; i < classes; i++)
        sum += exp((double)logits[i] - (double)most);
    return (double)logits[class] - (double)most - log(sum);
}

static int check_tokens(const struct choice_tokens *t, int vocab, const char *what, struct err *err)
{
    if (!t->len)
        return err_set(err, ERR_INVALID, "expected a context and an ending that are not empty");
    for (size_t i = 0; i < t->len; i++)
        if (t->token[i] >= vocab)
            return err_set(err, ERR_INVALID, "%s: token %zu: %d, expected 0..%d: the model's", what, i,
                           t->token[i], vocab - 1);
    return 0;
}

int choice_check(const struct choice_question *q, int vocab, int positions, struct err *err)
{
    if (check_tokens(&q->context, vocab, "context", err))
        return -1;
    for (int i = 0; i < q->endings; i++) {
        if (check_tokens(&q->ending[i], vocab, "ending", err))
            return -1;
        if (q->ending[i].len > (size_t)positions)
            return err_set(err, ERR_INVALID, "an ending of %zu tokens, expected at most %d", q->ending[i].len,
                           positions);
    }
    return 0;
}

/* How many of the context's tokens there is room for before an ending, whose last one is told, not taken in. */
static int room(const struct decoder *d, const struct choice_question *q, int ending)
{
    size_t most = (size_t)decoder_positions(d) - (q->ending[ending].len - 1);

    return (int)(q->context.len < most ? q->context.len : most);
}

/* The context's last `kept` tokens, and what stands behind them for the endings from `from` on. */
static void take_context(struct decoder *d, const struct choice_question *q, int kept, int from, double *sum)
{
    decoder_rewind(d, 0);
    decoder_take(d, q->context.token + q->context.len - (size_t)kept, kept);
    const float *logits = decoder_logits(d, kept - 1, 1);
    for (int i = from; i < q->endings; i++)
        sum[i] = log_probability(logits, decoder_vocab(d), q->ending[i].token[0]);
}

/* An ending's other tokens. */
static double rest_of(struct decoder *d, const struct choice_tokens *ending)
{
    const int classes = decoder_vocab(d);
    const int n = (int)ending->len - 1;
    double sum = 0;

    if (n > 0)
        decoder_take(d, ending->token, n);
    for (int done = 0; done < n; done += DECODER_LOGITS_ROWS) {
        int rows = n - done < DECODER_LOGITS_ROWS ? n - done : DECODER_LOGITS_ROWS;
        const float *logits = decoder_logits(d, done, rows);
        for (int i = 0; i < rows; i++)
            sum += log_probability(logits + (ptrdiff_t)i * classes, classes, ending->token[1 + done + i]);
    }
    return sum;
}

int choice_scores(struct decoder *d, const struct choice_question *q, double *ret, struct err *err)
{
    int kept = 0;

    if (choice_check(q, decoder_vocab(d), decoder_positions(d), err))
        return -1;
    for (int i = 0; i < q->endings; i++) {
        int n = room(d, q, i);
        if (n != kept)
            take_context(d, q, kept = n, i, ret);
        decoder_rewind(d, kept);
        ret[i] += rest_of(d, &q->ending[i]);
    }
    return 0;
}

int choice_count(struct decoder *d, const struct choice_question *q, struct choice_counts *counts,
                 struct err *err)
{
    double score[CHOICE_ENDINGS_MAX];
    int sum = 0, mean = 0;

    if (choice_scores(d, q, score, err))
        return -1;
    for (int i = 1; i < q->endings; i++) {
        if (score[i] > score[sum])
            sum = i;
        if (score[i] / (double)q->ending[i].len > score[mean] / (double)q->ending[mean].len)
            mean = i;
    }
    counts->asked++;
    counts->by_sum += sum == q->answer;
    counts->by_mean += mean == q->answer;
    return 0;
}
