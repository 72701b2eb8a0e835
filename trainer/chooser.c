/* chooser.c - the questions once, when the run begins; then a share of them as often as it is wanted. */
#include "trainer/chooser.h"

#include "kernels/device.h"
#include "trainer/data/sampler.h"
#include "trainer/data/tokens.h"
#include "trainer/evaluate.h"

#include <inttypes.h>

enum { ASKED, BY_SUM, BY_MEAN, COUNTS };

void chooser_close(struct chooser *c)
{
    decoder_free(c->decoder);
    kctx_free(c->own);
    questions_free(c->questions);
    *c = (struct chooser){0};
}

static int open_questions(struct chooser *c, const struct config *cfg, struct err *err)
{
    const int vocab = (int)cfg->gpt2.vocab;
    /* Text is for a model of bytes: a training has no vocabulary. */
    cleanup_bpe struct bpe *bytes = vocab <= TOKENS_BYTES_VOCAB ? bpe_bytes() : NULL;

    c->questions = questions_open(cfg->choose_data, bytes, cfg->choose_limit, err);
    if (!c->questions)
        return -1;
    return questions_check(c->questions, vocab, (int)cfg->gpt2.block_size, err)
               ? err_wrap(err, "%.100s", cfg->choose_data)
               : 0;
}

int chooser_open(struct chooser *c, const struct config *cfg, struct model *m, struct kctx *ctx, int threads,
                 struct err *err)
{
    const struct kctx_options machine = {.threads = threads};

    *c = (struct chooser){0};
    if (!cfg->choose_data && (cfg->choose_every || cfg->choose_limit))
        return err_set(err, ERR_INVALID, "--choose_%s: expected --choose_data FILE too",
                       cfg->choose_every ? "every" : "limit");
    if (!cfg->choose_data)
        return 0;
    if (open_questions(c, cfg, err))
        return err_wrap(err, "--choose_data");
    if (!device_is_host(ctx) && !(ctx = c->own = kctx_make(&machine, err)))
        return -1;
    c->decoder = decoder_make(m, ctx, (int)cfg->gpt2.n_head, err);
    return c->decoder ? 0 : err_wrap(err, "--choose_data");
}

/* Shares differ by a question: all ranks ask for the end as often as the one with the longest. */
static int ask_share(struct chooser *c, const struct chooser_ranks *ranks, struct choice_counts *counts,
                     uint32_t *ret_stop, struct err *err)
{
    const int64_t all = questions_count(c->questions);
    const int64_t longest = (all + ranks->comm->world - 1) / ranks->comm->world;
    const struct shard mine = sampler_shard(all, ranks->comm->rank, ranks->comm->world);

    for (int64_t i = 0; i < longest; i++) {
        if (evaluate_stopped(ranks->comm, ranks->stop, ranks->timeout_ms, ret_stop, err))
            return -1;
        if (*ret_stop)
            return 0;
        if (i < mine.count &&
            choice_count(c->decoder, questions_at(c->questions, mine.first + i), counts, err))
            return err_wrap(err, "question %" PRId64, mine.first + i);
    }
    return 0;
}

int chooser_ask(struct chooser *c, const struct chooser_ranks *ranks, struct choice_counts *ret,
                uint32_t *ret_stop, struct err *err)
{
    struct choice_counts own = {0};

    if (ask_share(c, ranks, &own, ret_stop, err))
        return -1;
    if (*ret_stop)
        return 0;
    double sums[COUNTS] = {
        [ASKED] = (double)own.asked, [BY_SUM] = (double)own.by_sum, [BY_MEAN] = (double)own.by_mean};
    if (ranks->comm->all_reduce_f64(ranks->comm, sums, COUNTS, ranks->timeout_ms, err))
        return -1;
    *ret = (struct choice_counts){(int64_t)sums[ASKED], (int64_t)sums[BY_SUM], (int64_t)sums[BY_MEAN]};
    return 0;
}
