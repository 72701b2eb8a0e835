/* choice.c - the context, then the ending, token by token. */
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

int choice_score(struct decoder *d, const struct choice_tokens *context, const struct choice_tokens *ending,
                 double *ret, struct err *err)
{
    const int classes = decoder_vocab(d);
    const size_t most = (size_t)decoder_positions(d);
    const float *logits = NULL;
    double sum = 0;

    if (!context->len || !ending->len)
        return err_set(err, ERR_INVALID, "expected a context and an ending that are not empty");
    if (ending->len > most)
        return err_set(err, ERR_INVALID, "an ending of %zu tokens, expected at most %zu", ending->len, most);
    /* The last token of the ending is told, not taken in. */
    size_t kept = most - (ending->len - 1);
    size_t first = context->len > kept ? context->len - kept : 0;
    decoder_rewind(d, 0);
    for (size_t i = first; i < context->len; i++)
        logits = decoder_next(d, context->token[i], i + 1 == context->len);
    for (size_t i = 0; i < ending->len; i++) {
        sum += log_probability(logits, classes, ending->token[i]);
        if (i + 1 < ending->len)
            logits = decoder_next(d, ending->token[i], true);
    }
    *ret = sum;
    return 0;
}
