/* chooser.h - questions with several endings that a GPT-2 is asked while it trains, each rank its own share of them.
 *
 * Ownership: chooser_open takes, chooser_close gives back, also half of it; the model and the context are borrowed. A model on
 *            a device is asked by its copy in the process's memory, which must have been fetched before.
 * Order:     chooser_ask is a collective call: every rank makes it. Before each question all ranks ask each other whether one
 *            has been told to stop; then all leave off at once, without a result.
 * Errors:    ERR_INVALID and ERR_NOT_FOUND name the option and the file; those of the collectives.
 */
#ifndef TK_TRAINER_CHOOSER_H
#define TK_TRAINER_CHOOSER_H

#include "trainer/config/config.h"
#include "trainer/generate/questions.h"
#include "trainer/stop.h"

struct chooser {
    struct questions *questions; /* NULL: none are asked */
    struct kctx *own;            /* where the training's context is a device's */
    struct decoder *decoder;
};

int chooser_open(struct chooser *c, const struct config *cfg, struct model *m, struct kctx *ctx, int threads,
                 struct err *err) MUST_CHECK;
void chooser_close(struct chooser *c);

struct chooser_ranks {
    struct collectives *comm;
    struct stop *stop; /* NULL: nobody stops this one */
    int64_t timeout_ms;
};

/* *ret: of all ranks together. *ret_stop: as evaluate's. */
int chooser_ask(struct chooser *c, const struct chooser_ranks *ranks, struct choice_counts *ret,
                uint32_t *ret_stop, struct err *err) MUST_CHECK;

#endif
