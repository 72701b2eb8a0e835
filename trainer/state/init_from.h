/* init_from.h - load a run's initial weights from a file (--init_from). run/session_state.c calls it.
 *
 * Order:  a collective call: every rank makes it. Rank 0 reads the file, the others need none.
 * Errors: those of weights_open and fill_find on rank 0, ERR_PEER on the others (rank 0's message has the
 *         reason), and those of the collectives.
 */
#ifndef TK_TRAINER_STATE_INIT_FROM_H
#define TK_TRAINER_STATE_INIT_FROM_H

#include "trainer/pipeline/pipeline.h"

int init_from(const char *path, struct pipeline *p, struct err *err) MUST_CHECK;

#endif
